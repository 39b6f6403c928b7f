// Bandwidth bounds with time windows. A link carries useful bytes only for a part of the plan's time, because
// data needs time to reach the link and time to go on from it. docs/ir.md, Lower bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/bounds/bound.h"
#include "ir/bounds/node_cuts.h"
#include "ir/bounds/orbits.h"
#include "ir/collective.h"
#include "ir/sizes.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// Returns the bound in picoseconds, rounded down, if it is above `at_least`, which is another bound;
// otherwise nullopt. Serves allreduce, by passes between the blocks of `partitions`. Serves alltoall(v) and
// sendrecv, by the linear program of concurrent flows, if the program is small enough. Returns nullopt for
// other collectives. Requires that CheckReachable() is OK.
std::optional<int64_t> WindowBound(const Topology& topology, const Collective& collective,
                                   const CollectiveSizes& sizes, TimeModel model, BoundEffort effort,
                                   const std::vector<NodeGroups>& partitions, int64_t at_least,
                                   Orbits& orbits);

}  // namespace xccl
