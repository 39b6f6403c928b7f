// The latency bound: how long the farthest byte takes when nothing is in its way.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// The largest, over needs and their destinations, of the cheapest path from a holder. A link costs its alpha
// and, where every unit pays it, its overhead: on all links in the blocking model; pipelined, where a later
// chunk of the same message finds it paid, on the links that leave the holder.
// Errors: kInvalidInput naming two ranks without a path that the collective needs.
// Cost: a search per holder; holders that hang alike on the same nodes, or are translates, are searched once.
StatusOr<int64_t> LatencyBound(const Topology& topology, const Collective& collective, TimeModel model);

}  // namespace xccl
