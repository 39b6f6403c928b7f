// Exact cuts of a machine: the bandwidth between two groups of ranks, through every node between them.
#pragma once

#include <cstdint>
#include <span>

#include "topologies/topology.h"

namespace xccl {

// Least bandwidth, in bytes per second, of links whose loss would part all of `from` from all of `to`, in
// that direction; traffic may pass every other node, GPUs too. Requires: both not empty, disjoint.
int64_t MinCut(const Topology& topology, std::span<const Rank> from, std::span<const Rank> to);
// The cut between the first half of the ranks (rounded down) and the rest; for a grid, the cut across its
// first dimension. Requires: two ranks or more.
int64_t CutBetweenHalves(const Topology& topology);

}  // namespace xccl
