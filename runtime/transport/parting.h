// Connections with other hosts that end in good order. A rank's last messages may still be on their way when
// its own part of a call is done, and a network drops them where either end closes. So an end stays until the
// receivers have said that they took all that it sent, and until all that it has to say has gone out.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/ids.h"
#include "runtime/transport/network.h"
#include "runtime/transport/transport.h"

namespace xccl {

// They are asked while a transport is destroyed, and outlive it.
struct PartingRules {
  std::function<bool()> failed;              // the operation: nobody takes anything any more
  std::function<bool(Rank rank)> has_left;   // nothing is expected of that rank
  std::chrono::nanoseconds time_limit = {};  // after which it closes nevertheless
};

// The transport, whose destructor waits so. `memory`: what it was connected with.
std::unique_ptr<Transport> PartWhenTaken(std::unique_ptr<Transport> network, const NetworkMemory& memory,
                                         PartingRules rules);

}  // namespace xccl
