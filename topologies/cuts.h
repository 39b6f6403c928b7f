// Exact cuts of a machine: the bandwidth between two groups of ranks, through every node between them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topologies/topology.h"

namespace xccl {

// Least bandwidth, in bytes per second, of links whose loss would part all of `from` from all of `to`, in
// that direction; traffic may pass every other node, GPUs too. Requires: both not empty, disjoint.
int64_t MinCut(const Topology& topology, std::span<const Rank> from, std::span<const Rank> to);
// The ranks in two halves. If several hosts have ranks, the first half is that of the first hosts (rounded
// down), in the order of their first ranks, so that no host is cut; else the first half of the ranks.
struct Halves {
  std::vector<Rank> from, to;
  std::vector<HostId> from_hosts, to_hosts;  // empty if the halves are of ranks
};
// Requires: two ranks or more.
Halves HalvesOf(const Topology& topology);
// The cut from the first half to the other; for a grid, the cut across its first dimension. Requires: as
// HalvesOf.
int64_t CutBetweenHalves(const Topology& topology);

}  // namespace xccl
