// Trees over hosts that use every lane of every host once in each direction. Host 0 is the root of all trees.
// Hosts are numbered in the order of the file, so that neighbours in a tree are near each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace xccl {

// The parent sends to the child on this lane of both hosts.
struct HostEdge {
  int32_t parent = 0, child = 0, lane = 0;
  int32_t level = 1;  // of the child: edges from host 0
  bool operator==(const HostEdge&) const = default;
};

struct HostTrees {
  std::vector<std::vector<HostEdge>> trees;  // parents before children
  int32_t levels() const;
};

// Returns as many spanning trees as lanes. No two edges leave a host on one lane, and no two enter a host on
// one lane. A host has children in one tree; the last few hosts, if lanes do not divide their number, in
// several. The depth is log_lanes(hosts) plus a constant. Cost: about hosts × lanes. Requires: hosts >= 2,
// lanes >= 2.
HostTrees DisjointTrees(int32_t hosts, int32_t lanes);

// Returns trees as DisjointTrees does, but each tree enters each group of hosts once, and all trees together
// leave a group as often as there are lanes. They are deeper, by about a factor for each level of groups.
// groups[k][h] is the group of host h on level k, the innermost level first; groups are numbered from 0 in
// the order of their first hosts, and those of a level are parts of those of the next. Cost: about hosts ×
// lanes² for each level. Requires: hosts >= 2, lanes >= 2.
HostTrees NestedTrees(int32_t hosts, std::span<const std::vector<int32_t>> groups, int32_t lanes);

// Returns a tree of this fan-out and of least depth for each lane, the same for all lanes: a host sends to up
// to `fanout` others on a lane. Requires: hosts >= 2, fanout >= 1.
HostTrees EqualTrees(int32_t hosts, int32_t lanes, int32_t fanout);

}  // namespace xccl
