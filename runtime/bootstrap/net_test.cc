#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "runtime/bootstrap/address.h"
#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/lobby.h"
#include "runtime/bootstrap/proof.h"
#include "runtime/bootstrap/socket.h"
#include "runtime/bootstrap/wire.h"

namespace xccl::bootstrap {
namespace {

TEST(Endpoint, ReadsHostsAndPorts) {
  const struct {
    const char *text, *host;
    uint16_t port;
  } kCases[] = {
      {"10.0.0.1:4000", "10.0.0.1", 4000},
      {"[fd00::1]:4000", "fd00::1", 4000},
      {"[fd00::1]", "fd00::1", 0},
      {"fd00::1", "fd00::1", 0},
      {"node-1", "node-1", 0},
  };
  for (const auto& c : kCases) {
    const auto endpoint = ParseEndpoint(c.text);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
    EXPECT_EQ(endpoint->host, c.host);
    EXPECT_EQ(endpoint->port, c.port);
  }
  EXPECT_EQ(ParseEndpoint("host:").status().message(), "host:: expected a port after the colon");
  EXPECT_EQ(ParseEndpoint("[::1").status().message(), "[::1: expected [ADDRESS]:PORT");
  EXPECT_EQ(ParseEndpoint(":1").status().message(), "':1': expected HOST:PORT");
  EXPECT_FALSE(ParseEndpoint("host:70000").ok());
}

TEST(Address, TextAndBack) {
  for (const char* text : {"10.0.0.1", "fd00::1", "127.0.0.1", "::1"}) {
    const auto address = NumericAddress(text, 7);
    ASSERT_TRUE(address.ok());
    EXPECT_EQ(address->Host(), text);
    EXPECT_EQ(address->port(), 7);
  }
  EXPECT_EQ(NumericAddress("::ffff:10.0.0.1", 1)->ToString(), "10.0.0.1:1");
  EXPECT_EQ(NumericAddress("fd00::1", 1)->ToString(), "[fd00::1]:1");
  EXPECT_TRUE(NumericAddress("127.0.1.1", 1)->IsLoopback());
  EXPECT_TRUE(IsOwn(*NumericAddress("::1", 1)));
  EXPECT_FALSE(IsOwn(*NumericAddress("192.0.2.77", 1)));
}

TEST(Resolve, LeavesOutUnknownNamesBesideKnownOnes) {
  const auto known = Resolve("no.such.host.invalid:7,127.0.0.1:8");
  ASSERT_TRUE(known.ok()) << known.status().message();
  ASSERT_EQ(known->size(), 1u);
  EXPECT_EQ((*known)[0].ToString(), "127.0.0.1:8");
  const std::string text = Resolve("no.such.host.invalid:7,other.invalid:7").status().message();
  EXPECT_EQ(text.rfind("no.such.host.invalid: the name of a host that cannot be looked up (", 0), 0u) << text;
}

TEST(Interfaces, AreSelectedByName) {
  const auto loopback = Interfaces("=lo");
  ASSERT_TRUE(loopback.ok()) << loopback.status().message();
  for (const Interface& interface : *loopback) EXPECT_EQ(interface.name, "lo");
  const auto others = Interfaces("^lo");
  for (const Interface& interface : others.ok() ? *others : std::vector<Interface>())
    EXPECT_NE(interface.name, "lo");
  const auto all = Interfaces();
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LE(all[i - 1].loopback, all[i].loopback);
  const std::string text = Interfaces("nosuch7").status().message();
  EXPECT_EQ(
      text.rfind("XCCL_INTERFACE=nosuch7: no interface with an address has such a name; this host has ", 0),
      0u)
      << text;
}

// Python's hmac gives it for a key of 32 zeros and a byte of 0.
TEST(Proof, IsHmacWithSha256) {
  Digest key = {};
  EXPECT_EQ(Hex(View(KeyedHash(key, "", ""))),
            "6620b31f2924b8c01547745f41825d322336f83ebb13d723678789d554d8a3ef");
  EXPECT_EQ(KeyOf("a"), KeyOf("a"));
  EXPECT_NE(KeyOf("a"), KeyOf("b"));
  key = KeyOf("a");
  EXPECT_NE(KeyedHash(key, "a", "b"), KeyedHash(key, "ab", ""));
}

Message MessageOf(const std::string& bytes) {
  MessageReader reader;
  reader.Add(bytes);
  return **reader.Next(1000);
}

TEST(Seal, OpensTheOtherEndsNextMessageAlone) {
  Seal caller(KeyOf("key"), true), door(KeyOf("key"), false), stranger(KeyOf("another"), true);
  const std::string first = caller.Close(MessageType::kHello, "one");
  const std::string second = caller.Close(MessageType::kHello, "two");
  const Status refused = InvalidInput("a message that was not sent by who holds the connection");
  const auto opened = [&](std::string bytes, size_t changed = 0) {
    if (changed != 0) bytes[changed] = static_cast<char>(bytes[changed] ^ 1);
    Message message = MessageOf(bytes);
    const Status status = door.Open(message);
    return status.ok() ? message.body : status.message();
  };
  constexpr size_t kType = 6, kHead = 16;
  EXPECT_EQ(opened(second), refused.message());
  EXPECT_EQ(opened(stranger.Close(MessageType::kHello, "one")), refused.message());
  EXPECT_EQ(opened(first, kHead), refused.message());
  EXPECT_EQ(opened(first, first.size() - 1), refused.message());
  EXPECT_EQ(opened(first, kType), refused.message());
  EXPECT_EQ(opened(Encode(MessageType::kHello, "")), refused.message());
  EXPECT_EQ(opened(first), "one");
  EXPECT_EQ(opened(first), refused.message());
  EXPECT_EQ(opened(second), "two");
  // A message that an end has sealed is refused when it comes back to that end.
  Message echo = MessageOf(door.Close(MessageType::kHello, "three"));
  EXPECT_EQ(door.Open(echo), refused);
  echo = MessageOf(Seal(KeyOf("key"), false).Close(MessageType::kHello, ""));
  EXPECT_EQ(caller.Open(echo), OkStatus());
}

// The other end closes, and then what is sent to it is answered by a reset, which reading does not tell.
TEST(Socket, IsOverWhenItWasResetBehindItsLastByte) {
  Address address = AddressV4(INADDR_LOOPBACK, 0);
  const StatusOr<OwnedFile> door = Listen(address);
  ASSERT_TRUE(door.ok());
  const StatusOr<OwnedFile> end = Connect(address, After(std::chrono::seconds(20)));
  ASSERT_TRUE(end.ok());
  OwnedFile other = Accept(*door);
  ASSERT_TRUE(other.open());
  EXPECT_EQ(send(other.get(), "left", 4, MSG_NOSIGNAL), 4);
  EXPECT_FALSE(IsOver(end->get()));
  other = OwnedFile();
  std::array<char, 8> bytes;
  EXPECT_EQ(recv(end->get(), bytes.data(), bytes.size(), MSG_DONTWAIT), 4);
  EXPECT_FALSE(IsOver(end->get()));
  EXPECT_EQ(send(end->get(), "left", 4, MSG_NOSIGNAL), 4);
  const Clock::time_point until = After(std::chrono::seconds(20));
  while (!IsOver(end->get()) && Clock::now() < until) usleep(1000);
  EXPECT_TRUE(IsOver(end->get()));
  EXPECT_EQ(recv(end->get(), bytes.data(), bytes.size(), MSG_DONTWAIT), 0);
}

TEST(Identity, Lists) {
  EXPECT_EQ(RankList({3}), "rank 3");
  EXPECT_EQ(RankList({3, 5, 6, 7}), "ranks 3, 5-7");
  EXPECT_EQ(RankList({0, 2, 4, 6, 8, 10, 12, 14, 16}), "ranks 0, 2, 4, 6, 8, 10, 12, 14, ...");
  EXPECT_EQ(HostIdentity("given"), "given");
  EXPECT_EQ(HostIdentity(""), HostIdentity(""));
  EXPECT_GE(PortOf("job"), 10000);
  EXPECT_LT(PortOf("job"), 30000);
}

TEST(Identity, TextsThatNameARank) {
  EXPECT_TRUE(NamesARank("rank 3 (host a, pid 7): its process has ended"));
  EXPECT_TRUE(NamesARank("Barrier: ranks 3-5 did not take part"));
  EXPECT_TRUE(NamesARank("rendezvous [::1]:4000: rank 3 cannot come"));
  for (const char* text : {"", "rank", "ranks ", "no memory", "rank and file", "evil rank 1: all is well"})
    EXPECT_FALSE(NamesARank(text)) << text;
}

TEST(Wire, ReadsMessagesInPieces) {
  const std::string bytes = Encode(MessageType::kHello, "abc") + Encode(MessageType::kLeft, "");
  MessageReader reader;
  std::vector<Message> messages;
  for (const char c : bytes) {
    reader.Add({&c, 1});
    auto message = reader.Next(100);
    ASSERT_TRUE(message.ok());
    if (*message) messages.push_back(**message);
  }
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].body, "abc");
  EXPECT_EQ(messages[1].type, MessageType::kLeft);
  reader.Add("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(reader.Next(100).status().message(), "what came is no message of XCCL");
  MessageReader large;
  large.Add(Encode(MessageType::kHello, std::string(101, 'x')));
  EXPECT_EQ(large.Next(100).status().message(), "a message of 101 bytes; expected at most 100");
  const Status status = LimitReached("text");
  EXPECT_EQ(UnpackStatus(PackStatus(status)), status);
  EXPECT_EQ(UnpackStatus("").code(), StatusCode::kInvalidInput);
}

TEST(Address, NumbersAreKnownWhenTheTimeIsOverAndNamesAreNot) {
  const auto over = Clock::now();
  const auto both = Resolve("no.such.host.invalid:7,127.0.0.1:8", over);
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ(both->at(0).ToString(), "127.0.0.1:8");
  const Status late = Resolve("no.such.host.invalid:7", over).status();
  if (late.code() == StatusCode::kLimit) {  // else it was looked up at once
    EXPECT_EQ(late.message(),
              "no.such.host.invalid: the name of a host that was not looked up within the time limit; hint: "
              "XCCL_ADDRESS=IP:PORT");
  }
  EXPECT_FALSE(late.ok());
}

// One address that no interface has used to keep a program from listening on the others.
TEST(Lobby, LeavesOutAddressesThatCannotBeUsed) {
  const Address loopback = AddressV4(INADDR_LOOPBACK, 0), another = *NumericAddress("192.0.2.77", 0);
  for (const std::vector<Address>& some : {std::vector{loopback, another}, std::vector{another, loopback}}) {
    const StatusOr<std::unique_ptr<Lobby>> lobby = Lobby::Open(some);
    ASSERT_TRUE(lobby.ok()) << lobby.status().message();
    ASSERT_EQ((*lobby)->addresses().size(), 1u);
    EXPECT_EQ((*lobby)->addresses()[0].Host(), "127.0.0.1");
    EXPECT_EQ((*lobby)->addresses()[0].port(), (*lobby)->port());
  }
  EXPECT_EQ(Lobby::Open({another}).status().message(),
            "cannot listen on 192.0.2.77:0: Cannot assign requested address");
}

// Strangers that say nothing used to take every descriptor of rank 0.
TEST(Lobby, HoldsFewStrangersAndShowsOutNobodyWhoIsKept) {
  constexpr rlim_t kFiles = 400;
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto open = [](uint16_t port) {
    StatusOr<OwnedFile> made = Connect(AddressV4(INADDR_LOOPBACK, port), After(std::chrono::seconds(5)));
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? *std::move(made) : OwnedFile();
  };
  const auto is_open = [](const OwnedFile& socket) {
    char byte = 0;
    return recv(socket.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
  };
  const rlimit few = {kFiles, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  StatusOr<std::unique_ptr<Lobby>> lobby = Lobby::Open({AddressV4(INADDR_LOOPBACK, 0)});
  ASSERT_TRUE(lobby.ok()) << lobby.status().message();
  std::vector<OwnedFile> guests;
  const auto come = [&](const std::string& bytes) {
    guests.push_back(open((*lobby)->port()));
    EXPECT_EQ(SendAll(guests.back().get(), bytes, After(std::chrono::seconds(5))), OkStatus());
    return (*lobby)->Wait(After(std::chrono::milliseconds(bytes.empty() ? 1 : 5000)));
  };
  const auto kept = come(Encode(MessageType::kKnock, "one that is kept"));
  ASSERT_TRUE(kept.ok() && *kept);
  (*lobby)->Keep((**kept).guest);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(come("").ok());
  const auto last = come(Encode(MessageType::kKnock, "one that comes last"));
  EXPECT_TRUE(last.ok() && *last && (**last).message);
  EXPECT_TRUE(is_open(guests.front()));
  EXPECT_TRUE(is_open(guests.back()));
  EXPECT_EQ(std::ranges::count_if(guests, is_open), 1 + kFiles / 4);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace xccl::bootstrap
