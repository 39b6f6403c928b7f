// The bound from copies. A byte that many ranks need leaves a set of nodes only once if enough time is left
// to copy the byte farther on. Near the end of the plan no time is left, and the byte must leave the set once
// for each rank. docs/ir.md, Lower bounds.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/bounds/bound.h"
#include "ir/bounds/orbits.h"
#include "ir/collective.h"
#include "ir/sizes.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// Returns the bound in picoseconds, rounded down, if it is above `at_least`, which is another bound;
// otherwise nullopt. Serves broadcast, allgather(v) and allreduce, and their mirror images reduce and
// reduce_scatter(v). If the work reaches a limit, returns the largest bound found so far, which is valid.
// Requires that CheckReachable() is OK.
std::optional<int64_t> CopiesBound(const Topology& topology, const Collective& collective,
                                   const CollectiveSizes& sizes, TimeModel model, BoundEffort effort,
                                   int64_t at_least, Orbits& orbits);

}  // namespace xccl
