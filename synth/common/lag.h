// Delays the transfers over blocked links (synth/common/blocked_links.h) and the transfers that depend on
// them. A message over blocked links arrives later than its step suggests, and so does the data that depends
// on the message. With the delay, links serve first the data that arrives first.
#pragma once

#include <cstdint>

#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// Returns the schedule with every transfer over a chain with blocked links at least `lag` steps later.
// Transfers that depend on a delayed transfer are at least as much later as that transfer. Requires a
// normalized schedule in which no rank reads a chunk in the step in which the chunk is written there. Linear
// in the chunks of all transfers.
Schedule WithLag(const Schedule& schedule, const Topology& topology, int32_t lag);

}  // namespace xccl
