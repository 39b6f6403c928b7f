// The latency bound: how long the farthest byte takes if nothing is in its way.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// The cost of the cheapest path from a holder to a destination, maximised over needs and their
// destinations. A link costs its alpha and, where every unit pays it, its overhead. In the blocking model
// that is on all links. In the pipelined model a later chunk of the same message pays none, so only links
// that leave a holder count it.
// Errors: kInvalidInput naming two ranks without a path that the collective needs.
// Cost: one search per set of holders; of holders with equal links to the same nodes, or in one orbit, only
// one is searched.
StatusOr<int64_t> LatencyBound(const Topology& topology, const Collective& collective, TimeModel model);

}  // namespace xccl
