// A rank's side of the rendezvous.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/version.h"
#include "runtime/bootstrap/address.h"
#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/knock.h"
#include "runtime/bootstrap/rendezvous.h"

namespace xccl::bootstrap {
namespace {

constexpr uint64_t kMostWords = 1 << 16;
// The server tells all who came about its time limit; they wait a little longer for it to do so.
constexpr auto kGrace = std::chrono::seconds(1);
constexpr auto kLook = std::chrono::milliseconds(100);  // between looks whether joining was aborted
// With who answers a knock and then does not show that it knows the secret: less where others wait behind it,
// more where the knock took long too, as at a rendezvous that serves thousands.
constexpr std::chrono::nanoseconds kLeastPatience = std::chrono::seconds(1);
constexpr std::chrono::nanoseconds kMostPatience = std::chrono::seconds(5);

// The address at which others reach this rank: of the interface that was asked for; else that which leads to
// the rendezvous; else, where that is the loopback, the best that there is. Ranks whose token is no secret
// stay on the loopback.
StatusOr<Address> OwnAddress(const std::string& names, Address towards, bool guessable) {
  towards.set_port(0);
  if (guessable || (names.empty() && !towards.IsLoopback())) return towards;
  XCCL_ASSIGN_OR_RETURN(std::vector<Interface> interfaces, Interfaces(names));
  if (interfaces.empty()) return towards;
  interfaces[0].address.set_port(0);
  return interfaces[0].address;
}

struct Attempt {
  Status status;
  bool tell = false;     // the status is final
  bool refused = false;  // by somebody who does not know the secret
  std::optional<Meeting> meeting;
};

Attempt GiveUp(Status status) { return {std::move(status), true, false, {}}; }
Attempt TryAgain(Status status) { return {std::move(status), false, false, {}}; }

class Visitor {
 public:
  Visitor(const Placement& placement, const std::vector<Address>& addresses, const BootstrapOptions& options,
          Clock::time_point until)
      : placement_(placement),
        options_(options),
        until_(until),
        knocks_(addresses, placement.token_seed),
        alone_(addresses.size() == 1) {
    hello_.product = kVersion;
    hello_.rank = placement.rank.value;
    hello_.ranks = placement.ranks;
    hello_.pid = getpid();
    hello_.host = HostName();
    hello_.limit = options.time_limit;
  }

  // Goes from address to address until one leads to a meeting. Not final: none has, in time.
  Attempt Visit();
  // Comes as rank 0 where another process serves, and stays until told why not.
  std::optional<Status> Claim(Clock::time_point until);
  // Comes, and says why it cannot stay.
  void Excuse(const Status& why, Clock::time_point until);
  std::string Reasons() const { return knocks_.Reasons(); }
  bool Stopped() const { return options_.stop != nullptr && *options_.stop; }

 private:
  Attempt Try(Connection server, const Address& address, Clock::time_point patience);
  Status SayHello(Connection& server);
  Attempt Wait(Connection server, const std::string& name, Clock::time_point patience);
  bool NamesPartners(const Welcome& welcome) const;

  const Placement& placement_;
  const BootstrapOptions& options_;
  Clock::time_point until_;
  Knocks knocks_;
  bool alone_;  // there is one address
  Hello hello_;
  std::unique_ptr<Lobby> door_;
};

bool Visitor::NamesPartners(const Welcome& welcome) const {
  return std::ranges::equal(welcome.partners, PartnersOf(placement_.rank.value, placement_.ranks), {},
                            &Partner::rank);
}

Status Visitor::SayHello(Connection& server) {
  hello_.left = until_ == Clock::time_point::max() ? BootstrapOptions::kForever
                                                   : std::chrono::nanoseconds(until_ - Clock::now());
  return SendSealed(server, MessageType::kHello, Pack(hello_), until_);
}

Attempt Visitor::Visit() {
  while (!Stopped() && Clock::now() < until_) {
    const std::optional<size_t> there = knocks_.Next(std::min(until_, After(kLook)));
    if (!there) continue;
    const std::chrono::nanoseconds patience =
        alone_ ? kMostPatience : std::clamp(4 * knocks_.Took(*there), kLeastPatience, kMostPatience);
    Attempt attempt = Try(knocks_.Take(*there), knocks_.At(*there), std::min(until_, After(patience)));
    if (attempt.meeting || attempt.tell) return attempt;
    knocks_.Failed(*there, attempt.status, attempt.refused);
    if (knocks_.AllRefused()) return GiveUp(attempt.status);
  }
  return TryAgain(OkStatus());
}

Attempt Visitor::Try(Connection server, const Address& address, Clock::time_point patience) {
  const std::string& names = options_.interface.empty() ? placement_.interface : options_.interface;
  StatusOr<Address> own = OwnAddress(names, OwnEndOf(server.socket.get()), placement_.guessable);
  if (!own.ok()) return GiveUp(own.status());
  if (door_ == nullptr || hello_.address != own->Host()) {
    StatusOr<std::unique_ptr<Lobby>> door = Lobby::Open({*own});
    if (!door.ok()) return GiveUp(door.status());
    door_ = *std::move(door);
    hello_.challenge = RandomDigest();
    hello_.address = own->Host();
    hello_.port = door_->port();
  }
  if (Status sent = SayHello(server); !sent.ok()) return TryAgain(sent);
  return Wait(std::move(server), fmt::format("rendezvous {}", address.ToString()), patience);
}

Attempt Visitor::Wait(Connection server, const std::string& name, Clock::time_point patience) {
  std::string served_by;
  const Clock::time_point last = Later(until_, kGrace);
  while (true) {
    const Clock::time_point until = served_by.empty() ? patience : last;
    StatusOr<Message> message =
        ReceiveMessage(server.socket.get(), server.reader, kMostWords, std::min(until, After(kLook)));
    const bool late = message.status().code() == StatusCode::kLimit;
    if (late && Stopped()) return GiveUp(PeerEnded(name + ": joining was aborted"));
    if (late && Clock::now() < until) continue;
    if (message.ok()) {
      const bool refused = message->type == MessageType::kRefused;
      Status opened = server.seal.Open(*message);
      if (!opened.ok() && refused) opened = UnpackStatus(message->body, kMostOfAStrangersReason);
      if (!opened.ok()) return {std::move(opened), false, refused, {}};
    }
    // A rendezvous of an earlier meeting may close its door while we are in it.
    if (!message.ok() && served_by.empty()) return TryAgain(message.status());
    if (!message.ok() && message.status().code() == StatusCode::kPeerEnded)
      return GiveUp(PeerEnded(
          fmt::format("{}: the process that served it ({}) has ended before all had come", name, served_by)));
    if (late)
      return GiveUp(LimitReached(fmt::format("{}: the process that serves it ({}) says nothing within {}",
                                             name, served_by, Seconds(options_.time_limit))));
    if (!message.ok()) return GiveUp(Annotate(message.status(), name));
    if (message->type == MessageType::kRefused) {
      Status why = UnpackStatus(message->body);
      return GiveUp(why.message().starts_with("rendezvous ") ? why : Annotate(why, name));
    }
    if (message->protocol != kProtocol)
      return GiveUp(
          InvalidInput(fmt::format("{}: speaks version {} of the protocol; expected version {}, that of "
                                   "XCCL {}",
                                   name, message->protocol, kProtocol, kVersion)));
    if (message->type == MessageType::kAccepted) {
      Unpacker body(message->body);
      const auto pid = body.Get<int32_t>();
      served_by = fmt::format("host {}, pid {}", Cleaned(body.GetText()), pid);
      knocks_.CloseAll();
    } else if (message->type == MessageType::kWelcome) {
      std::optional<Welcome> welcome = UnpackWelcome(message->body);
      if (!welcome || !NamesPartners(*welcome))
        return GiveUp(InvalidInput(
            fmt::format("{}: {} sent a welcome that cannot be read, or names other partners than this rank's",
                        name, served_by.empty() ? "it" : served_by)));
      Meeting meeting{std::move(*welcome), hello_.address, std::move(door_),
                      hello_.challenge,    served_by,      std::move(server)};
      return {OkStatus(), true, false, std::move(meeting)};
    }
  }
}

std::optional<Status> Visitor::Claim(Clock::time_point until) {
  const std::optional<size_t> there = knocks_.Next(until);
  if (!there) return std::nullopt;
  Connection server = knocks_.Take(*there);
  hello_.address = OwnEndOf(server.socket.get()).Host();
  hello_.port = knocks_.At(*there).port();
  if (!SayHello(server).ok()) return std::nullopt;
  while (true) {
    const StatusOr<Message> message = ReceiveSealed(server, kMostWords, until);
    if (!message.ok()) return std::nullopt;
    if (message->type == MessageType::kRefused) return UnpackStatus(message->body);
  }
}

void Visitor::Excuse(const Status& why, Clock::time_point until) {
  const std::string excuse = Packer().PutText(Pack(hello_)).PutText(PackStatus(why)).Take();
  while (const std::optional<size_t> there = knocks_.Next(until)) {
    Connection server = knocks_.Take(*there);
    const Clock::time_point patience = std::min(until, After(kLeastPatience));
    const Status sent = SendSealed(server, MessageType::kFail, excuse, patience);
    if (sent.ok() && ReceiveSealed(server, kMostWords, patience).ok()) return;  // a refusal, as it tells all
    knocks_.Failed(*there, sent);
  }
}

// The best addresses of this host that others may reach.
std::string OwnAddresses() {
  constexpr size_t kMost = 3;
  std::vector<std::string> hosts;
  for (const Interface& interface : Interfaces())
    if (!interface.loopback && hosts.size() < kMost) hosts.push_back(interface.address.Host());
  return hosts.empty() ? "127.0.0.1" : Join(hosts, " or ");
}

// No answer came from the rendezvous. `when`: the limit, and what each address gave instead.
std::string WhyNobody(const Placement& placement, const std::vector<Address>& addresses, bool serves,
                      const std::string& when) {
  const std::string seen =
      fmt::format("{} {}; expected ",
                  serves ? "this process serves it and does not reach it itself" : "nobody serves it", when);
  if (std::ranges::all_of(addresses, &Address::IsLoopback) &&
      std::ranges::none_of(Interfaces(), &Interface::loopback))
    return seen + fmt::format("the loopback of host {} to be up; hint: ip link set lo up", HostName());
  if (serves)
    return seen +
           fmt::format("an address at which host {} reaches itself; hint: XCCL_ADDRESS=HOST:PORT with {}",
                       HostName(), OwnAddresses());
  if (placement.served) return seen + "the process that made the unique id to be there until all have met";
  if (placement.rank.value == 0)
    return seen + fmt::format(
                      "an address of host {}, where rank 0 is, or local rank 0 of the same job and token "
                      "on the host with that address; hint: XCCL_ADDRESS=HOST:PORT with {}",
                      HostName(), OwnAddresses());
  return seen +
         "rank 0 on the host with that address, or local rank 0 there, of the same job and token; hint: "
         "XCCL_ADDRESS=HOST:PORT of rank 0's host";
}

}  // namespace

StatusOr<Meeting> Meet(const Placement& placement, const std::vector<Address>& addresses,
                       const BootstrapOptions& options, bool serves, Clock::time_point until) {
  Visitor visitor(placement, addresses, options, until);
  Attempt attempt = visitor.Visit();
  if (attempt.meeting) return *std::move(attempt.meeting);
  if (attempt.tell) return attempt.status;
  if (visitor.Stopped())
    return PeerEnded(fmt::format("rendezvous {}: joining was aborted", placement.rendezvous));
  return LimitReached(
      fmt::format("rendezvous {}: {}", placement.rendezvous,
                  WhyNobody(placement, addresses, serves,
                            fmt::format("within {} ({})", Seconds(options.time_limit), visitor.Reasons()))));
}

std::optional<Status> Claim(const Placement& placement, const std::vector<Address>& addresses,
                            const BootstrapOptions& options, Clock::time_point until) {
  return Visitor(placement, addresses, options, After(options.time_limit)).Claim(until);
}

void Excuse(const Placement& placement, const std::vector<Address>& addresses,
            const BootstrapOptions& options, const Status& why) {
  const Clock::time_point until = After(std::chrono::seconds(2));
  Visitor(placement, addresses, options, until).Excuse(why, until);
}

}  // namespace xccl::bootstrap
