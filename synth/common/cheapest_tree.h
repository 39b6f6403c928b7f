// Finds the cheapest broadcast tree at given prices of links; TreeGrower's trees are only cheap where the two
// directions of a cable have different prices. Switches do not branch. Links that slower links feed cost more
// (synth/common/blocked_links.h).
//
// Source: Chu and Liu (1965), Edmonds (1967), on the cheapest paths between members.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "synth/common/blocked_links.h"
#include "synth/common/tree_grower.h"
#include "topologies/topology.h"

namespace xccl {

class CheapestTrees {
 public:
  CheapestTrees(const Topology& topology, std::span<const Rank> members, BlockedLinks blocked);

  // Sets the prices for all later Grow. cost: by link. s_per_ps: the cost of a picosecond of latency. Cost:
  // one search for cheapest paths for each member.
  void SetPrices(std::span<const double> cost, double s_per_ps);

  // As TreeGrower::Grow; the tree's cost leaves out blocking. Requires: SetPrices; every member can be
  // reached. Cost: members² for each contraction of circles, of which there are at most as many as members.
  GrownTree Grow(Rank root, std::vector<LinkId>& links);

 private:
  // The paths from (backwards: to) one member. A place is a pair (node, slowest link between it and the
  // member).
  struct Search {
    std::vector<LinkId> via;      // by place: the link next to it, towards the member
    std::vector<int32_t> before;  // by place: the place at the link's other end; -1: start, or not reached
    std::vector<int32_t> at;      // by other member: the place in which the search reached it
  };

  void FindPaths(size_t member, std::span<const double> cost, double s_per_ps);
  // The links of the cheapest path between two members, the last one first.
  void PathOf(size_t from, size_t to, std::vector<LinkId>& path) const;

  const Topology& topology_;
  std::vector<Rank> members_;
  BlockedLinks blocked_;
  TreeGrower grower_;
  std::vector<int32_t> member_at_;  // by node; -1: none
  std::vector<double> price_;       // by link, without its latency's
  std::vector<double> cost_;        // [from × members + to], of the path
  std::vector<Search> search_;      // by member
};

// The arc into each node of the cheapest tree from the root, as the node that it comes from; -1 at the root.
// cost: [from × nodes + to], infinite where there is no arc. Requires: the root reaches all nodes.
std::vector<int32_t> CheapestArborescence(int32_t nodes, int32_t root, std::span<const double> cost);

}  // namespace xccl
