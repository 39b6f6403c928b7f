// Trees of hosts, over which a broadcast goes from host to host. There are as many trees as lanes. Host 0 is
// the root of all trees. Hosts are numbered in the order of RailHosts (hosts.h), so that neighbours in a tree
// are near each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace xccl {

// The parent host sends to the child host over lane `lane` of both.
struct HostEdge {
  int32_t parent = 0, child = 0, lane = 0;
  int32_t level = 1;  // number of edges from host 0 to the child
  bool operator==(const HostEdge&) const = default;
};

struct HostTrees {
  std::vector<std::vector<HostEdge>> trees;  // parents before children
  int32_t levels() const;
};

// Returns as many spanning trees as lanes. On one lane, no two edges leave a host and no two enter a host. A
// host other than the root has children in one tree only, except that the last (hosts - 1) mod lanes hosts
// may have children in several. The depth is log_lanes(hosts) plus a constant. Cost: about hosts × lanes.
// Requires: hosts >= 2, lanes >= 2.
HostTrees DisjointTrees(int32_t hosts, int32_t lanes);

// Returns as many spanning trees as lanes, with lanes as in DisjointTrees. Each tree enters each group of
// hosts once, and all trees together leave a group at most as often as there are lanes. Each level of groups
// makes the trees deeper by about a constant factor. groups[k][h] is the group of host h on level k, the
// innermost level first. Groups are numbered from 0 in the order of their first hosts. The groups of a level
// are parts of the groups of the next level. Cost: about hosts × lanes² for each level. Requires: hosts >= 2,
// lanes >= 2.
HostTrees NestedTrees(int32_t hosts, std::span<const std::vector<int32_t>> groups, int32_t lanes);

// Returns the same tree for every lane: the least deep tree in which a host sends to at most `fanout` hosts.
// Requires: hosts >= 2, fanout >= 1.
HostTrees EqualTrees(int32_t hosts, int32_t lanes, int32_t fanout);

}  // namespace xccl
