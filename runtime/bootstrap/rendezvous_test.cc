#include "runtime/bootstrap/rendezvous.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/version.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/hello.h"
#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/knock.h"
#include "runtime/bootstrap/lobby.h"
#include "runtime/bootstrap/socket.h"
#include "runtime/bootstrap/test_group.h"
#include "runtime/bootstrap/unique_id.h"
#include "runtime/bootstrap/wire.h"
#include "runtime/host/owned_file.h"

namespace xccl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::JoinAll;
using testing::PlaceOf;

std::string Host() { return bootstrap::HostName(); }
std::string Me(int rank) { return bootstrap::Who(rank, Host(), getpid()); }

// The text with ports of clients as PORT.
std::string WithoutPorts(std::string text) {
  for (size_t at = 0; (at = text.find(" at 127.0.0.1:", at)) != std::string::npos;) {
    at += 14;
    size_t end = at;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    text.replace(at, end - at, "PORT");
  }
  return text;
}

// Those who are refused late wait a tenth of this at most.
BootstrapOptions Patient() {
  BootstrapOptions options;
  options.time_limit = seconds(8);
  return options;
}

// A rank that says who it is by hand.
bootstrap::Hello HelloOf(int32_t rank, int32_t ranks) {
  bootstrap::Hello hello;
  hello.product = kVersion;
  hello.rank = rank;
  hello.ranks = ranks;
  hello.pid = 4711;
  hello.host = "h1";
  hello.address = "127.0.0.1";
  hello.port = 1;
  hello.limit = hello.left = seconds(20);
  return hello;
}

constexpr uint16_t kProtocolAt = 4;  // in a message

// Knocks at a rendezvous by hand, and proves that it knows the secret.
StatusOr<bootstrap::Connection> Knock(const bootstrap::Address& at, const std::string& secret) {
  const bootstrap::Clock::time_point until = bootstrap::After(seconds(5));
  bootstrap::Connection made;
  XCCL_ASSIGN_OR_RETURN(made.socket, bootstrap::Connect(at, until));
  const std::string mine(32, 'm');
  XCCL_RETURN_IF_ERROR(
      bootstrap::SendAll(made.socket.get(), bootstrap::Encode(bootstrap::MessageType::kKnock, mine), until));
  XCCL_ASSIGN_OR_RETURN(const bootstrap::Message challenge,
                        bootstrap::ReceiveMessage(made.socket.get(), made.reader, 100, until));
  made.seal = bootstrap::Seal(
      bootstrap::KeyedHash(bootstrap::KeyOf(secret), "rendezvous", mine + challenge.body), true);
  return made;
}

// Says a hello by hand, when the rendezvous is there, and gives the refusal. Who does not stay leaves when it
// is accepted.
std::string Answer(const bootstrap::Address& at, const bootstrap::Hello& hello, bool stays = true,
                   const std::string& secret = "a secret", char protocol = bootstrap::kProtocol) {
  for (int round = 0; round < 1000; ++round, std::this_thread::sleep_for(milliseconds(10))) {
    StatusOr<bootstrap::Connection> made = Knock(at, secret);
    if (!made.ok()) continue;
    std::string bytes = made->seal.Close(bootstrap::MessageType::kHello, Pack(hello));
    bytes[kProtocolAt] = protocol;
    if (!bootstrap::SendAll(made->socket.get(), bytes, bootstrap::After(seconds(5))).ok()) continue;
    while (true) {
      const auto answer = bootstrap::ReceiveSealed(*made, 1 << 16, bootstrap::After(seconds(20)));
      if (!answer.ok()) return answer.status().message();
      if (answer->type == bootstrap::MessageType::kRefused)
        return bootstrap::UnpackStatus(answer->body).message();
      if (!stays) return "accepted";
    }
  }
  return "no rendezvous";
}

bootstrap::Address Loopback(uint16_t port) { return bootstrap::AddressV4(INADDR_LOOPBACK, port); }

std::string Endpoint(uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

// The failures of a group whose rank 0 serves, after a third party has said `hello` to it. by_all: the reason
// that all ranks of the group are told; by_it: the third party's.
struct Heard {
  std::string by_all, by_it;
};
Heard Tell(const bootstrap::Hello& hello, int32_t ranks) {
  const uint16_t port = testing::FreePort();
  Heard heard;
  std::thread third([&] { heard.by_it = WithoutPorts(Answer(Loopback(port), hello)); });
  const std::vector<Status> all =
      JoinAll({PlaceOf(0, ranks, Endpoint(port)), PlaceOf(1, ranks, Endpoint(port))}, Patient());
  third.join();
  EXPECT_EQ(all[0], all[1]);
  const std::string text = WithoutPorts(all[0].message());
  const std::string start = "rendezvous " + Endpoint(port) + ": ";
  EXPECT_EQ(text.rfind(start, 0), 0u) << text;
  EXPECT_EQ(text, heard.by_it);
  heard.by_all = text.substr(std::min(start.size(), text.size()));
  return heard;
}

TEST(Rendezvous, NamesTheRanksThatDoNotCome) {
  BootstrapOptions options;
  options.time_limit = milliseconds(1500);
  const std::string endpoint = testing::FreeEndpoint();
  std::vector<Placement> some;
  for (const int rank : {0, 1, 2, 4}) some.push_back(PlaceOf(rank, 8, endpoint));
  for (const Status& status : JoinAll(some, options))
    EXPECT_EQ(status,
              LimitReached("rendezvous " + endpoint + ": ranks 3, 5-7 of 8 did not come within 1.5 s"));
}

TEST(Rendezvous, SaysThatNobodyServes) {
  BootstrapOptions options;
  options.time_limit = milliseconds(300);
  const std::string endpoint = testing::FreeEndpoint();
  EXPECT_EQ(
      JoinAll({PlaceOf(1, 2, endpoint)}, options)[0].message(),
      "rendezvous " + endpoint + ": nobody serves it within 0.3 s (" + endpoint +
          ": Connection refused); expected rank 0 on the host with that address, or local rank 0 there, of "
          "the same job and token; hint: XCCL_ADDRESS=HOST:PORT of rank 0's host");
  EXPECT_EQ(JoinAll({PlaceOf(1, 2, "no.such.host.invalid:1")}, options)[0].code(), StatusCode::kInvalidInput);
}

// The text without what the addresses answered, which is in brackets.
std::string WithoutAnswers(std::string text) {
  const size_t begin = text.find(" (");
  return begin == std::string::npos ? text : text.erase(begin, text.find(')', begin) + 1 - begin);
}

// Ranks that are stopped while all connect used to end a group without a limit after 30 s.
TEST(Rendezvous, ConnectingTakesAsLongAsTheTimeLimitSays) {
  using bootstrap::Clock;
  EXPECT_EQ(bootstrap::ConnectingUntil(Clock::time_point::max()), Clock::time_point::max());
  const Clock::time_point late = Clock::now() + std::chrono::hours(1);
  EXPECT_EQ(bootstrap::ConnectingUntil(late), late + bootstrap::kLastToCome);
}

// A name's first address that takes connections and says nothing used to hold up its second.
TEST(Knocks, ASilentAddressHoldsUpNoOther) {
  bootstrap::Address silent = Loopback(0), nobody = Loopback(testing::FreePort());
  const StatusOr<OwnedFile> door = bootstrap::Listen(silent);
  ASSERT_TRUE(door.ok());
  const StatusOr<std::unique_ptr<bootstrap::Lobby>> lobby = bootstrap::Lobby::Open({Loopback(0)});
  ASSERT_TRUE(lobby.ok());
  bootstrap::Serving serving;
  serving.secret = "a secret";
  std::atomic<bool> stop{false};
  serving.stop = &stop;
  std::thread server([&] { (void)Serve(**lobby, serving); });
  bootstrap::Knocks knocks({silent, nobody, Loopback((*lobby)->port())}, "a secret");
  EXPECT_EQ(knocks.Next(bootstrap::After(seconds(20))), std::optional<size_t>(2));
  EXPECT_EQ(bootstrap::PeerOf(knocks.Take(2).socket.get()).port(), (*lobby)->port());
  EXPECT_EQ(knocks.Reasons(), silent.ToString() + ": no answer, " + nobody.ToString() +
                                  ": Connection refused, " + Endpoint((*lobby)->port()) + ": no answer");
  stop = true;
  server.join();
}

// Two jobs of one user, of one size and without an address, used to mix: the second rank 0 waited for the
// port while the first took the second's ranks.
TEST(Rendezvous, ASecondRank0EndsBothJobs) {
  const std::string endpoint = testing::FreeEndpoint();
  const std::string expected = "rendezvous " + endpoint + ": rank 0: claimed by two processes, pid " +
                               std::to_string(getpid()) + " on host " + Host() + " and pid " +
                               std::to_string(getpid()) + " on host " + Host() +
                               "; expected one for each of ranks 0 to 2; hint: XCCL_JOB=NAME, or an "
                               "XCCL_ADDRESS of its own, for each of two jobs at once";
  for (const Status& status :
       JoinAll({PlaceOf(0, 3, endpoint), PlaceOf(1, 3, endpoint), PlaceOf(0, 3, endpoint)}, Patient()))
    EXPECT_EQ(status, InvalidInput(expected));
}

// It used to ask for rank 0 on that host, which it is.
TEST(Rendezvous, Rank0WhoseHostHasNotTheAddressSaysSo) {
  BootstrapOptions options;
  options.time_limit = milliseconds(300);
  // RFC 5737 keeps this address for documents: no host has it.
  const std::string text = JoinAll({PlaceOf(0, 2, "192.0.2.1:4000")}, options)[0].message();
  const std::string expected =
      "rendezvous 192.0.2.1:4000: nobody serves it within 0.3 s; expected an address of host " + Host() +
      ", where rank 0 is, or local rank 0 of the same job and token on the host with that address; hint: "
      "XCCL_ADDRESS=HOST:PORT with ";
  EXPECT_EQ(WithoutAnswers(text).substr(0, expected.size()), expected);
}

// Whoever has the port first may send a text of any length, with escapes for terminals.
TEST(Rendezvous, AStrangersRefusalIsCut) {
  bootstrap::Address address = Loopback(0);
  const OwnedFile door = bootstrap::Listen(address).value();
  BootstrapOptions options;
  options.time_limit = milliseconds(300);
  const std::string refusal =
      bootstrap::Encode(bootstrap::MessageType::kRefused,
                        bootstrap::PackStatus(InvalidInput("go away\x1b[2J" + std::string(4000, 'x'))));
  std::atomic<bool> ended = false;
  std::thread stranger([&] {
    std::vector<OwnedFile> guests;
    for (pollfd comes = {door.get(), POLLIN, 0}; !ended; (void)poll(&comes, 1, 10)) {
      OwnedFile guest = bootstrap::Accept(door);
      if (guest.get() < 0) continue;
      (void)bootstrap::SendAll(guest.get(), refusal, bootstrap::After(seconds(5))).ok();
      guests.push_back(std::move(guest));
    }
  });
  const std::string seen = JoinAll({PlaceOf(1, 2, Endpoint(address.port()))}, options)[0].message();
  ended = true;
  stranger.join();
  EXPECT_NE(seen.find("go away?[2Jxxx"), std::string::npos) << seen;
  EXPECT_LT(seen.size(), 1500u) << seen;
}

// Rank 0 serves at its loopback, and cannot reach it.
TEST(Rendezvous, ALoopbackThatIsDownIsNamedByEveryRank) {
  constexpr int kNoNamespaces = 77;
  for (const int rank : {0, 1}) {
    testing::Child child([rank] {
      if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return kNoNamespaces;
      BootstrapOptions options;
      options.time_limit = milliseconds(300);
      const std::string seen =
          Bootstrap::Join(PlaceOf(rank, 2, "127.0.0.1:4000"), options).status().message();
      const std::string who =
          rank == 0 ? "this process serves it and does not reach it itself" : "nobody serves it";
      const std::string expected = "rendezvous 127.0.0.1:4000: " + who +
                                   " within 0.3 s (127.0.0.1:4000: Network is unreachable); expected the "
                                   "loopback of host " +
                                   Host() + " to be up; hint: ip link set lo up";
      if (seen != expected) fprintf(stderr, "%s\nexpected %s\n", seen.c_str(), expected.c_str());
      return seen == expected ? 0 : 1;
    });
    const int result = child.Wait();
    if (result == kNoNamespaces) GTEST_SKIP() << "this user may not make network name spaces";
    EXPECT_EQ(result, 0) << rank;
  }
}

// Variables that some other program set used to make a process wait for ranks without a word about them.
TEST(Rendezvous, TimeOutsNameTheVariablesThatDecided) {
  BootstrapOptions options;
  options.time_limit = milliseconds(300);
  const std::string endpoint = testing::FreeEndpoint();
  Placement first = PlaceOf(0, 4, endpoint), third = PlaceOf(2, 4, endpoint);
  first.rank_variable = third.rank_variable = "RANK";
  first.ranks_variable = third.ranks_variable = "WORLD_SIZE";
  EXPECT_EQ(JoinAll({first}, options)[0],
            LimitReached("rendezvous " + endpoint +
                         ": ranks 1-3 of 4 did not come within 0.3 s; RANK and WORLD_SIZE are set; hint: "
                         "unset RANK where no launcher started this process"));
  EXPECT_EQ(
      JoinAll({third}, options)[0].message(),
      "rendezvous " + endpoint + ": nobody serves it within 0.3 s (" + endpoint +
          ": Connection refused); expected rank 0 on the host with that address, or local rank 0 there, "
          "of the same job and token; RANK and WORLD_SIZE are set; hint: XCCL_ADDRESS=HOST:PORT of rank "
          "0's host, or unset RANK where no launcher started this process");
}

TEST(Rendezvous, ARankClaimedTwice) {
  const Heard heard = Tell(HelloOf(1, 3), 3);
  const std::string mine = "pid " + std::to_string(getpid()) + " on host " + Host();
  const std::string other = "pid 4711 on host h1";
  const std::string end =
      "; expected one for each of ranks 0 to 2; hint: XCCL_JOB=NAME, or an XCCL_ADDRESS of its own, for each "
      "of "
      "two jobs at once";
  EXPECT_TRUE(heard.by_all == "rank 1: claimed by two processes, " + mine + " and " + other + end ||
              heard.by_all == "rank 1: claimed by two processes, " + other + " and " + mine + end)
      << heard.by_all;
}

TEST(Rendezvous, AnotherSize) {
  const Heard heard = Tell(HelloOf(2, 4), 3);
  const std::string as = ", as rank ";
  EXPECT_TRUE(heard.by_all == "rank 2 (host h1, pid 4711): a group of 4; expected 3, as " + Me(0) + " says" ||
              heard.by_all == "rank 2 (host h1, pid 4711): a group of 4; expected 3, as " + Me(1) + " says" ||
              heard.by_all == Me(0) + ": a group of 3; expected 4, as rank 2 (host h1, pid 4711) says" ||
              heard.by_all == Me(1) + ": a group of 3; expected 4, as rank 2 (host h1, pid 4711) says")
      << heard.by_all;
}

TEST(Rendezvous, AnotherVersion) {
  bootstrap::Hello old = HelloOf(2, 3);
  old.product = "0.0.9";
  EXPECT_EQ(Tell(old, 3).by_all, std::string("rank 2 (host h1, pid 4711): runs XCCL 0.0.9; expected ") +
                                     kVersion + ", as the rendezvous");
}

TEST(Rendezvous, AnotherProtocol) {
  const uint16_t port = testing::FreePort();
  std::string heard;
  std::thread third([&] { heard = Answer(Loopback(port), HelloOf(2, 3), true, "a secret", 9); });
  const Status status = JoinAll({PlaceOf(0, 3, Endpoint(port)), PlaceOf(1, 3, Endpoint(port))}, Patient())[0];
  third.join();
  EXPECT_EQ(status.message(), heard);
  const std::string end =
      std::string(": speaks version 9 of the protocol; expected version 2, that of XCCL ") + kVersion;
  EXPECT_EQ(heard.rfind("rendezvous " + Endpoint(port) + ": 127.0.0.1:", 0), 0u) << heard;
  EXPECT_EQ(heard.substr(heard.size() - std::min(heard.size(), end.size())), end);
}

TEST(Rendezvous, ATokenOfAnotherJobIsNamedOnBothSides) {
  const uint16_t port = testing::FreePort();
  Placement wrong = PlaceOf(2, 3, Endpoint(port));
  wrong.token_seed = "another secret";
  BootstrapOptions options;
  options.time_limit = milliseconds(1500);
  const std::vector<Status> all =
      JoinAll({PlaceOf(0, 3, Endpoint(port)), PlaceOf(1, 3, Endpoint(port)), wrong}, options);
  const std::string who = Me(2) + " at 127.0.0.1:PORT was refused: it has the token of another job";
  const std::string start = "rendezvous " + Endpoint(port) + ": ";
  EXPECT_EQ(WithoutPorts(all[2].message()),
            start + who + "; hint: the same XCCL_TOKEN and XCCL_ADDRESS on all ranks");
  for (const size_t rank : {0u, 1u}) {
    EXPECT_EQ(all[rank].code(), StatusCode::kLimit);
    EXPECT_EQ(WithoutPorts(all[rank].message()), start + "rank 2 of 3 did not come within 1.5 s; " + who);
  }
}

// Strangers that say nothing, say garbage, or announce more than fits neither block the meeting nor end it.
TEST(Rendezvous, StrangersDoNotMatter) {
  const uint16_t port = testing::FreePort();
  std::vector<Status> all;
  std::thread first([&] {
    all = JoinAll({PlaceOf(0, 3, Endpoint(port)), PlaceOf(1, 3, Endpoint(port))}, Patient());
  });
  std::vector<OwnedFile> strangers;
  const std::string words[] = {"",
                               "GET / HTTP/1.1\r\n\r\n",
                               std::string(100000, '\0'),
                               "XCCL",
                               bootstrap::Encode(bootstrap::MessageType::kHello, "short"),
                               bootstrap::Encode(bootstrap::MessageType::kKnock, std::string(32, 'x')),
                               bootstrap::Encode(bootstrap::MessageType::kHello, std::string(5000, 'x'))};
  while (strangers.size() < 60) {
    auto socket = bootstrap::Connect(Loopback(port), bootstrap::After(seconds(5)));
    if (!socket.ok()) continue;
    (void)bootstrap::SendAll(socket->get(), words[strangers.size() % 7], bootstrap::After(milliseconds(100)));
    if (strangers.size() % 11 == 0) *socket = OwnedFile();
    strangers.push_back(*std::move(socket));
  }
  EXPECT_EQ(JoinAll({PlaceOf(2, 3, Endpoint(port))}, Patient())[0], OkStatus());
  first.join();
  for (const Status& status : all) EXPECT_EQ(status, OkStatus());
}

TEST(Rendezvous, ARankThatEndsBeforeAllHaveCome) {
  const uint16_t port = testing::FreePort();
  std::thread third([&] { EXPECT_EQ(Answer(Loopback(port), HelloOf(2, 4), false), "accepted"); });
  const std::vector<Status> all =
      JoinAll({PlaceOf(0, 4, Endpoint(port)), PlaceOf(1, 4, Endpoint(port))}, Patient());
  third.join();
  EXPECT_EQ(all[0].message(),
            "rendezvous " + Endpoint(port) +
                ": rank 2 (host h1, pid 4711): its process has ended, or has given up, before all "
                "had come");
  EXPECT_EQ(all[1].code(), StatusCode::kPeerEnded);
}

// A rank that comes after the meeting has failed learns why, and does not wait.
TEST(Rendezvous, LateRanksLearnTheReason) {
  const std::string endpoint = testing::FreeEndpoint();
  std::vector<Status> all;
  std::thread first([&] {
    all = JoinAll({PlaceOf(0, 4, endpoint), PlaceOf(1, 4, endpoint), PlaceOf(1, 4, endpoint)}, Patient());
  });
  std::this_thread::sleep_for(milliseconds(500));
  const Status late = JoinAll({PlaceOf(2, 4, endpoint)}, Patient())[0];
  first.join();
  EXPECT_EQ(late.code(), StatusCode::kInvalidInput);
  for (const Status& status : all) EXPECT_EQ(late, status);
}

// The rendezvous fails before it knows how many ranks there are; whoever comes next is told at once.
TEST(Rendezvous, AnotherVersionComesFirst) {
  const auto id = MakeUniqueId(Patient());
  ASSERT_TRUE(id.ok()) << id.status().message();
  const auto place = FromUniqueId(*id, Rank(0), 2);
  ASSERT_TRUE(place.ok()) << place.status().message();
  bootstrap::Hello old = HelloOf(1, 2);
  old.product = "0.0.9";
  const std::string heard =
      Answer(bootstrap::Resolve(place->rendezvous)->at(0), old, true, place->token_seed);
  EXPECT_EQ(heard, "rendezvous " + place->rendezvous +
                       ": rank 1 (host h1, pid 4711): runs XCCL 0.0.9; expected " + kVersion +
                       ", as the rendezvous");
  EXPECT_EQ(JoinAll({*place}, Patient())[0].message(), heard);
}

// Whoever has the port first is no rendezvous for rank 0, and learns nothing by which it could be one.
TEST(Rendezvous, Rank0JoinsNobodyAtItsOwnAddress) {
  bootstrap::Address at = Loopback(0);
  const StatusOr<OwnedFile> door = bootstrap::Listen(at);
  ASSERT_TRUE(door.ok()) << door.status().message();
  BootstrapOptions options;
  options.time_limit = milliseconds(1500);
  const std::vector<Status> all =
      JoinAll({PlaceOf(0, 2, at.ToString()), PlaceOf(1, 2, at.ToString())}, options);
  EXPECT_EQ(all[0], SystemError("rendezvous " + at.ToString() + ": cannot listen on " + at.ToString() +
                                ": Address already in use, by another process; expected the port to be free "
                                "for this one; hint: XCCL_ADDRESS=HOST:PORT with another port"));
  EXPECT_EQ(all[1].code(), StatusCode::kLimit) << all[1].message();
}

// A process that speaks as a rendezvous does, and does not know the token, is not believed.
TEST(Rendezvous, ARendezvousProvesItself) {
  bootstrap::Address at = Loopback(0);
  StatusOr<OwnedFile> door = bootstrap::Listen(at);
  ASSERT_TRUE(door.ok()) << door.status().message();
  std::string heard;
  std::thread stranger([&] {
    pollfd ready{door->get(), POLLIN, 0};
    poll(&ready, 1, 10000);
    bootstrap::Connection guest;
    guest.socket = OwnedFile(accept(door->get(), nullptr, nullptr));
    const auto knock =
        bootstrap::ReceiveMessage(guest.socket.get(), guest.reader, 1000, bootstrap::After(seconds(5)));
    const std::string mine(32, 's');
    (void)bootstrap::SendAll(guest.socket.get(), bootstrap::Encode(bootstrap::MessageType::kChallenge, mine),
                             bootstrap::After(seconds(5)));
    const auto hello =
        bootstrap::ReceiveMessage(guest.socket.get(), guest.reader, 10000, bootstrap::After(seconds(5)));
    if (knock.ok() && hello.ok()) heard = knock->body + hello->body;
    guest.seal = bootstrap::Seal(bootstrap::KeyOf("a guess"), false);
    for (const auto type : {bootstrap::MessageType::kAccepted, bootstrap::MessageType::kWelcome})
      (void)bootstrap::SendSealed(guest, type, std::string(100, '\0'), bootstrap::After(seconds(5)));
    *door = OwnedFile();
  });
  BootstrapOptions options;
  options.time_limit = milliseconds(1500);
  const Status status = JoinAll({PlaceOf(1, 2, at.ToString())}, options)[0];
  stranger.join();
  EXPECT_EQ(status.code(), StatusCode::kLimit) << status.message();
  EXPECT_EQ(heard.find("a secret"), std::string::npos);
  const bootstrap::Digest key = bootstrap::KeyOf("a secret");
  EXPECT_EQ(heard.find(bootstrap::View(key)), std::string::npos);
}

// A token that others can compute is good for the loopback alone.
TEST(Rendezvous, OtherHostsNeedASecret) {
  Placement place = PlaceOf(0, 2, "192.0.2.1:4000");
  place.guessable = true;
  EXPECT_EQ(JoinAll({place}, Patient())[0],
            InvalidInput("rendezvous 192.0.2.1:4000: no token, and other hosts reach this address; expected "
                         "XCCL_TOKEN or XCCL_TOKEN_FILE, the same on all ranks; hint: openssl rand -hex 16"));
  const std::string endpoint = testing::FreeEndpoint();
  std::vector<Placement> both = {PlaceOf(0, 2, endpoint), PlaceOf(1, 2, endpoint)};
  for (Placement& one : both) one.guessable = true;
  for (const Status& status : JoinAll(both, Patient())) EXPECT_EQ(status, OkStatus());
}

// A rank that has no descriptors left says so, and the others do not wait for it.
TEST(Rendezvous, ARankThatCannotComeTells) {
  const std::string endpoint = testing::FreeEndpoint();
  testing::Child third([&] {
    const rlimit few = {20, 20};
    setrlimit(RLIMIT_NOFILE, &few);
    return Bootstrap::Join(PlaceOf(2, 3, endpoint), Patient()).ok() ? 1 : 0;
  });
  const std::vector<Status> all = JoinAll({PlaceOf(0, 3, endpoint), PlaceOf(1, 3, endpoint)}, Patient());
  EXPECT_EQ(third.Wait(), 0);
  for (const Status& status : all)
    EXPECT_EQ(status.message(), ("rendezvous " + endpoint + ": " + bootstrap::Who(2, Host(), third.pid()) +
                                 " cannot come: 128 open files are needed and 20 allowed; hint: ulimit -Hn "
                                 "128"));
}

// Joining that is given up ends, also where no other process is there.
TEST(Rendezvous, JoiningStops) {
  std::atomic<bool> stop = false;
  BootstrapOptions options;
  options.time_limit = BootstrapOptions::kForever;
  options.stop = &stop;
  const std::string endpoint = testing::FreeEndpoint();
  std::vector<Status> all;
  std::thread joining([&] { all = JoinAll({PlaceOf(0, 3, endpoint), PlaceOf(1, 3, endpoint)}, options); });
  std::this_thread::sleep_for(milliseconds(200));
  stop = true;
  joining.join();
  for (const Status& status : all) EXPECT_EQ(status.code(), StatusCode::kPeerEnded) << status.message();
}

// The process with local rank 0 on the host with the address serves where rank 0 is elsewhere.
TEST(Rendezvous, LocalRank0Serves) {
  const uint16_t port = testing::FreePort();
  std::vector<Placement> placements = {PlaceOf(1, 2, Endpoint(port)), PlaceOf(0, 2, Endpoint(port))};
  placements[0].local_rank = 0;
  placements[1].served = true;  // as if the address were not its own
  for (const Status& status : JoinAll(placements, Patient())) EXPECT_EQ(status, OkStatus());
}

TEST(Partners, AreOneTwoFourAway) {
  EXPECT_TRUE(bootstrap::PartnersOf(0, 1).empty());
  EXPECT_EQ(bootstrap::PartnersOf(1, 2), std::vector<int32_t>{0});
  EXPECT_EQ(bootstrap::PartnersOf(0, 8), (std::vector<int32_t>{1, 2, 4, 6, 7}));
  EXPECT_EQ(bootstrap::PartnersOf(5, 10000).size(), 28u);
}

}  // namespace
}  // namespace xccl
