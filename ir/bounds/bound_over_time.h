// The bound from flows over time: the data that one rank must get, or give, moves over links that take in at
// most their bandwidth and deliver alpha later. It counts distance and bytes together. docs/ir.md, Lower
// bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/graph/min_cost_flow.h"
#include "ir/bounds/bound.h"
#include "ir/collective.h"
#include "ir/sizes.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// One arc for each link, by id. Its cost is the time that data spends on the link beside its bytes: alpha,
// and in `blocking` also the overhead.
std::vector<CostArc> ArcsOf(const Topology& topology, TimeModel model);

// The most arcs that a bound of this kind looks at.
int64_t MostArcs(BoundEffort effort);

// The largest flow-over-time bound found, rounded down, if it is above `at_least`, which is another bound;
// else absent. If the work reaches a limit, the result is the largest bound found by then, which is valid.
// Always absent for user-defined tables. Requires: every need of the collective can be met on this topology.
std::optional<int64_t> FlowOverTimeBound(const Topology& topology, const Collective& collective,
                                         const CollectiveSizes& sizes, TimeModel model, BoundEffort effort,
                                         int64_t at_least);

}  // namespace xccl
