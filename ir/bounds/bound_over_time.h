// The bound from flows over time. The data that one rank must get or give flows over links. Each link takes
// in at most its bandwidth and delivers alpha later. So the bound counts distance and bytes together.
// docs/ir.md, Lower bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/graph/min_cost_flow.h"
#include "ir/bounds/bound.h"
#include "ir/bounds/orbits.h"
#include "ir/collective.h"
#include "ir/sizes.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// Returns one arc for each link, in order of link ids. The arc's cost is the time that data spends on the
// link in addition to the time of its bytes: alpha, and in the blocking model also the overhead. In the
// pipelined model, the overhead of links between GPUs is the arc's start_cost.
std::vector<CostArc> ArcsOf(const Topology& topology, TimeModel model);

// Returns the most arcs that the search for one bound looks at.
int64_t MostArcs(BoundEffort effort);

// Returns the largest flow-over-time bound that was found, in ps and rounded down, if it is above `at_least`,
// which is another bound; otherwise nullopt. If the work reaches a limit, returns the largest bound found so
// far, which is valid. Returns nullopt for user-defined tables. Requires that CheckReachable() is OK.
std::optional<int64_t> FlowOverTimeBound(const Topology& topology, const Collective& collective,
                                         const CollectiveSizes& sizes, TimeModel model, BoundEffort effort,
                                         int64_t at_least, Orbits& orbits);

}  // namespace xccl
