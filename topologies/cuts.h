// Exact cuts of a machine: the bandwidth between two groups of ranks, through every node between them.
#pragma once

#include <cstdint>
#include <span>

#include "base/graph/max_flow.h"
#include "topologies/topology.h"

namespace xccl {

// The topology as a flow network: nodes by id, arcs by link id, and two more nodes without arcs,
// ExtraSource and ExtraSink.
FlowNetwork NetworkOf(const Topology& topology);
inline int32_t ExtraSource(const Topology& topology) { return topology.num_nodes(); }
inline int32_t ExtraSink(const Topology& topology) { return topology.num_nodes() + 1; }

// The least total bandwidth, in bytes per second, of links whose removal separates all of `from` from all
// of `to` in that direction. Traffic may pass through every other node, GPUs too. Requires: both not empty,
// disjoint.
int64_t MinCut(const Topology& topology, std::span<const Rank> from, std::span<const Rank> to);
// The cut between the first half of the ranks (rounded down) and the rest; for a grid, the cut across its
// first dimension. Requires: two ranks or more.
int64_t CutBetweenHalves(const Topology& topology);

}  // namespace xccl
