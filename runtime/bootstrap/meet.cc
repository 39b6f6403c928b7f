// A rank's side of the rendezvous.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "base/version.h"
#include "runtime/bootstrap/address.h"
#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/rendezvous.h"

namespace xccl::bootstrap {
namespace {

constexpr uint64_t kMostWords = 1 << 16;
// The server tells all who came about its time limit; they wait a little longer for it to do so.
constexpr auto kGrace = std::chrono::seconds(2);

// The address at which others reach this rank: of the interface that was asked for; else that which leads to
// the rendezvous; else, where that is the loopback, the best that there is.
StatusOr<std::string> OwnAddress(const std::string& names, const Address& towards) {
  if (names.empty() && !towards.IsLoopback()) return towards.Host();
  XCCL_ASSIGN_OR_RETURN(const std::vector<Interface> interfaces, Interfaces(names));
  if (interfaces.empty()) return towards.Host();
  return interfaces[0].address.Host();
}

struct Attempt {
  Status status;      // of the connection; OK: an answer came
  bool tell = false;  // the status is final
  std::optional<Meeting> meeting;
};

Attempt GiveUp(Status status) { return {std::move(status), true, {}}; }

class Visitor {
 public:
  Visitor(const Placement& placement, const BootstrapOptions& options, uint16_t door, Clock::time_point until)
      : placement_(placement), options_(options), until_(until) {
    hello_.token = TokenOf(placement.token_seed);
    hello_.product = kVersion;
    hello_.rank = placement.rank.value;
    hello_.ranks = placement.ranks;
    hello_.pid = getpid();
    hello_.host = HostName();
    hello_.port = door;
    hello_.limit = options.time_limit;
  }

  Attempt Try(const Address& address);

 private:
  Attempt Wait(OwnedFile socket, const std::string& name);

  const Placement& placement_;
  const BootstrapOptions& options_;
  Clock::time_point until_;
  Hello hello_;
};

Attempt Visitor::Try(const Address& address) {
  const std::string name = fmt::format("rendezvous {}", address.ToString());
  StatusOr<OwnedFile> socket = Connect(address, std::min(until_, After(std::chrono::seconds(5))));
  if (!socket.ok()) return {socket.status(), false, {}};
  const std::string& names = options_.interface.empty() ? placement_.interface : options_.interface;
  StatusOr<std::string> own = OwnAddress(names, OwnEndOf(socket->get()));
  if (!own.ok()) return GiveUp(own.status());
  hello_.address = *own;
  hello_.left = until_ == Clock::time_point::max() ? BootstrapOptions::kForever
                                                   : std::chrono::nanoseconds(until_ - Clock::now());
  if (Status sent = SendAll(socket->get(), Encode(MessageType::kHello, Pack(hello_)), until_); !sent.ok())
    return {sent, false, {}};
  return Wait(*std::move(socket), name);
}

Attempt Visitor::Wait(OwnedFile socket, const std::string& name) {
  MessageReader reader;
  std::string server;
  const Clock::time_point last = until_ == Clock::time_point::max() ? until_ : until_ + kGrace;
  while (true) {
    StatusOr<Message> message = ReceiveMessage(socket.get(), reader, kMostWords, last);
    if (!message.ok() && server.empty()) {
      // A rendezvous of an earlier meeting may close its door while we are in it.
      return {message.status(), message.status().code() == StatusCode::kInvalidInput, {}};
    }
    if (!message.ok() && message.status().code() == StatusCode::kPeerEnded)
      return GiveUp(PeerEnded(
          fmt::format("{}: the process that served it ({}) has ended before all had come", name, server)));
    if (!message.ok()) return GiveUp(Annotate(message.status(), name));
    if (message->type == MessageType::kRefused) return GiveUp(UnpackStatus(message->body));
    if (message->protocol != kProtocol)
      return GiveUp(
          InvalidInput(fmt::format("{}: speaks version {} of the protocol; expected version {}, that of "
                                   "XCCL {}",
                                   name, message->protocol, kProtocol, kVersion)));
    if (message->type == MessageType::kAccepted) {
      Unpacker body(message->body);
      const auto pid = body.Get<int32_t>();
      server = fmt::format("host {}, pid {}", body.GetText(), pid);
    } else if (message->type == MessageType::kWelcome) {
      std::optional<Welcome> welcome = UnpackWelcome(message->body);
      if (!welcome) return GiveUp(InvalidInput(name + ": its welcome cannot be read"));
      return {OkStatus(), true,
              Meeting{std::move(*welcome), hello_.address, server, {std::move(socket), std::move(reader)}}};
    }
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

StatusOr<Meeting> Meet(const Placement& placement, const BootstrapOptions& options, uint16_t door,
                       bool serves, Clock::time_point until) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<Address> addresses, Resolve(placement.rendezvous));
  Visitor visitor(placement, options, door, until);
  auto pause = std::chrono::milliseconds(5);
  while (true) {
    std::string reasons;
    for (const Address& address : addresses) {
      Attempt attempt = visitor.Try(address);
      if (attempt.meeting) return *std::move(attempt.meeting);
      if (attempt.tell) return attempt.status;
      reasons +=
          fmt::format("{}{}: {}", reasons.empty() ? "" : ", ", address.ToString(), attempt.status.message());
    }
    if (Clock::now() + pause >= until)
      return LimitReached(
          fmt::format("rendezvous {}: {}", placement.rendezvous,
                      WhyNobody(placement, addresses, serves,
                                fmt::format("within {} ({})", Seconds(options.time_limit), reasons))));
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(200));
  }
}

}  // namespace xccl::bootstrap
