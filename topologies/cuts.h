// Exact cuts of a machine: the bandwidth between groups of nodes, through whatever lies between them.
#pragma once

#include <cstdint>
#include <span>

#include "base/graph/max_flow.h"
#include "topologies/topology.h"

namespace xccl {

// Nodes by their ids and arcs by their link ids, with two nodes more: ExtraSource and ExtraSink, which join
// nothing yet.
FlowNetwork NetworkOf(const Topology& topology);
inline int32_t ExtraSource(const Topology& topology) { return topology.num_nodes(); }
inline int32_t ExtraSink(const Topology& topology) { return topology.num_nodes() + 1; }

// Least bandwidth, in bytes per second, of links whose loss would part all of `from` from all of `to`, in
// that direction; traffic may pass every other node, GPUs too. Requires: both not empty, disjoint.
int64_t MinCut(const Topology& topology, std::span<const Rank> from, std::span<const Rank> to);
// Between the first half of the ranks (rounded down) and the rest; for a grid that is the cut across its
// first dimension. Requires: two ranks or more.
int64_t CutBetweenHalves(const Topology& topology);

}  // namespace xccl
