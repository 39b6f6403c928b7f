// The latency bound: how long the farthest byte takes if nothing is in its way.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// The cost of the cheapest path from a holder to a destination, maximised over needs and their destinations.
// A link costs its alpha and, where every unit pays it, its overhead. In the blocking model that is on all
// links. In the pipelined model a later chunk of the same message pays none, so only links that leave a
// holder count it. Errors: kInfeasible naming two ranks without a path that the collective needs;
// kInvalidInput for a rank that the topology lacks. Cost: one search for each set of holders. One holder is
// searched for all holders with equal links to the same nodes, and for all holders of one orbit.
StatusOr<int64_t> LatencyBound(const Topology& topology, const Collective& collective, TimeModel model);

}  // namespace xccl
