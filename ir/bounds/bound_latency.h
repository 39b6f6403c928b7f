// The latency bound: the time of the farthest byte if no other byte delays it.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/bounds/orbits.h"
#include "ir/collective.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// Returns in picoseconds the largest cost, over all needs (needs.h) and their destinations, of the cheapest
// path from a holder to the destination. A link costs its alpha. In the blocking model every link also costs
// its overhead. In the pipelined model only links that leave a holder cost their overhead, because an earlier
// chunk of the same message may have paid the overhead of later links.
// Errors: kInfeasible if a need has no path (the message names two ranks); kInvalidInput if the topology
// lacks a rank of the collective. Cost: one search for each set of holders. If each holder is a set of its
// own, one search serves all holders with equal links to the same nodes, and all holders of one orbit.
StatusOr<int64_t> LatencyBound(const Topology& topology, const Collective& collective, TimeModel model,
                               Orbits& orbits);

}  // namespace xccl
