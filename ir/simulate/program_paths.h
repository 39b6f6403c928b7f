// The links that messages of a program take: of a connection a chain, of a group a tree that its messages
// take once. In: a program that verifies and the topology that it was lowered for; out: an error where the
// paths are not of that topology, else what follows what.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

// Errors: kInvalidInput for a path that is missing, not of the topology, or not from end to end, and for a
// tree that branches or joins where the machine cannot.
Status CheckPaths(const Program& program, const Topology& topology);

// A group's path; hops are places in Group::path.
struct GroupTree {
  std::vector<std::vector<int32_t>> next;  // hops that begin where each ends
  std::vector<int32_t> feeds;              // how many hops end where each begins
  std::vector<int32_t> join;               // of each hop before which several are added up: a number; else -1
  int32_t num_joins = 0;
  // Of each member what its message leaves by; of a multicast the root's.
  std::vector<int32_t> first_hop;
  // Of each hop the connections whose messages it delivers, in order; empty where it ends at a switch.
  std::vector<std::vector<int32_t>> delivers;
};
// Requires: CheckPaths found nothing.
GroupTree TreeOf(const Program& program, const Group& group, const Topology& topology);

// Of every connection its group; -1 where it is in none.
std::vector<int32_t> GroupsOfConnections(const Program& program);
// The connections of a group, in order of its members.
std::vector<int32_t> ConnectionsOf(const Program& program, const Group& group);

}  // namespace xccl
