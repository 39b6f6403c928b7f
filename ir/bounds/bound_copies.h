// The bound from copies: a byte that many ranks need leaves a set of nodes once while there is time to copy
// it farther on, and as often as there are ranks when there is not. docs/ir.md, Lower bounds.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/bounds/bound.h"
#include "ir/collective.h"
#include "ir/sizes.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// For broadcast, allgather(v) and allreduce, and by their mirror images for reduce and reduce_scatter.
// Rounded down; absent for other collectives, and if it is not above `at_least`, which is another bound. If
// the work reaches a limit, the result is the largest bound found by then, which is valid. Requires: every
// need of the collective can be met on this topology.
std::optional<int64_t> CopiesBound(const Topology& topology, const Collective& collective,
                                   const CollectiveSizes& sizes, TimeModel model, BoundEffort effort,
                                   int64_t at_least);

}  // namespace xccl
