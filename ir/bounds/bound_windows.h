// Bounds that fill links with bytes, as the bandwidth bounds do, but only for as long as a link can be of
// use: data needs time to come to it, and time to go on. docs/ir.md, Lower bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/bounds/bound.h"
#include "ir/bounds/node_cuts.h"
#include "ir/collective.h"
#include "ir/sizes.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// For alltoall(v) and sendrecv by the linear program of concurrent flows, where that is small enough; for
// allreduce by passes between the blocks of `partitions`. Rounded down; absent elsewhere and where it is not
// above `at_least`, which is another bound. Requires: every need of the collective can be met on this
// topology.
std::optional<int64_t> WindowBound(const Topology& topology, const Collective& collective,
                                   const CollectiveSizes& sizes, TimeModel model, BoundEffort effort,
                                   const std::vector<NodeGroups>& partitions, int64_t at_least);

}  // namespace xccl
