// The two sides of the rendezvous. The server hears every rank say who it is, and when all have come tells
// each the addresses of its partners. If the ranks cannot meet, the server tells the reason to all that came.
// Memory and sockets: one of each per rank, while it serves.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/bootstrap/address.h"
#include "runtime/bootstrap/hello.h"
#include "runtime/bootstrap/lobby.h"
#include "runtime/bootstrap/options.h"
#include "runtime/bootstrap/placement.h"

namespace xccl::bootstrap {

// All have come when ranks connect with their partners. They have what is left of their time limit for it,
// and as much as the last to come needs. Without a limit sockets alone tell who is gone.
inline constexpr auto kLastToCome = std::chrono::seconds(1);
inline Clock::time_point ConnectingUntil(Clock::time_point limit) { return Later(limit, kLastToCome); }

struct Serving {
  std::string name;  // "rendezvous 10.0.0.1:4000"
  std::string secret;
  Clock::time_point until = Clock::time_point::max();  // ranks that come may bring an earlier one
  std::chrono::nanoseconds limit = BootstrapOptions::kForever;
  const std::atomic<bool>* stop = nullptr;  // looked at ten times a second
};
// How long it stays after the meeting has failed, to tell ranks that come late.
inline constexpr auto kLongestLinger = std::chrono::seconds(3);
// `use` in KeyedHash: for the keys of connections with the rendezvous, and of connections between partners.
inline constexpr std::string_view kUseOfRendezvous = "rendezvous", kUseOfPartners = "partners";
// Returns when all have reached their partners, or have been told why not. The result is what was told.
Status Serve(Lobby& lobby, const Serving& serving);

struct Meeting {
  Welcome welcome;
  std::string address;          // this rank's own, as it told the others
  std::unique_ptr<Lobby> door;  // where partners find this rank
  Digest challenge = {};        // the challenge that it told them
  std::string served_by;        // "host h0, pid 4711"
  Connection server;
};
// Says who this rank is, and waits for the welcome. `serves`: this process serves the rendezvous.
StatusOr<Meeting> Meet(const Placement& placement, const std::vector<Address>& addresses,
                       const BootstrapOptions& options, bool serves, Clock::time_point until);
// Asks whether another process serves one of these addresses and knows the secret. That process then refuses
// this process as rank 0, since they belong to two jobs. It tells the ranks that came to it the same Status,
// which is returned. None where no process with the secret serves there.
std::optional<Status> Claim(const Placement& placement, const std::vector<Address>& addresses,
                            const BootstrapOptions& options, Clock::time_point until);
// A rank that cannot meet tells the rendezvous why, if it is there within two seconds: the others are told.
void Excuse(const Placement& placement, const std::vector<Address>& addresses,
            const BootstrapOptions& options, const Status& why);

}  // namespace xccl::bootstrap
