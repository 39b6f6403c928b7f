// The links that messages of a program take: a chain for a connection, and a tree for a group of a switch. A
// message of such a group takes each link of the tree once. Requires a program that verifies and the topology
// that it was lowered for.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

// A group's path as a tree. Hops are positions in Group::path.
struct GroupTree {
  std::vector<std::vector<int32_t>> next;  // by hop: the hops that start where it ends
  std::vector<int32_t> feeds;              // by hop: how many hops end where it starts
  std::vector<int32_t> join;  // by hop: the number of the join where it starts, or -1 if feeds <= 1
  int32_t num_joins = 0;
  // By member: the hop on which its message leaves the sender; in a multicast, always the root's hop.
  std::vector<int32_t> first_hop;
  // By hop: the connections whose messages it delivers, in order; empty if it ends at a switch.
  std::vector<std::vector<int32_t>> delivers;
};
// Requires: HasSwitch(group).
GroupTree TreeOf(const Program& program, const Group& group, const Topology& topology);

// Returns for each connection its group that uses a switch (HasSwitch), or -1 if it has none.
std::vector<int32_t> GroupsOfConnections(const Program& program);
// Returns the connections of a group, in order of its members.
std::vector<int32_t> ConnectionsOf(const Program& program, const Group& group);

}  // namespace xccl
