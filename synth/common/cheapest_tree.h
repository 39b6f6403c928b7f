// Finds the cheapest broadcast tree at given prices of links, among the trees that consist of paths between
// members. TreeGrower's trees are cheap, but not always the cheapest if the two directions of a cable have
// different prices. Switches do not branch. A link after a slower link costs more than its price
// (synth/common/blocked_links.h).
//
// Source: the algorithm of Chu and Liu (1965) and Edmonds (1967), applied to the cheapest paths between
// members.
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

  // Sets the prices for all later calls of Grow. `cost` holds the price of each link; s_per_ps is the price
  // of a picosecond of latency. Cost: one search for cheapest paths per member.
  void SetPrices(std::span<const double> cost, double s_per_ps);

  // Grows the cheapest tree, with arguments and result as in TreeGrower::Grow. The tree's cost leaves out
  // blocking. Requires that SetPrices was called and that every member can be reached. Cost: members² per
  // contraction of circles; the number of contractions is at most the number of members.
  GrownTree Grow(Rank root, std::vector<LinkId>& links);

 private:
  // The cheapest paths from one member to the other members, or, if backwards, from the other members to it.
  // A place is a pair (node, speed of the path between the node and the member).
  struct Search {
    std::vector<LinkId> via;      // by place: the link next to the place, towards the member
    std::vector<int32_t> before;  // by place: the place at the other end of via; -1: start, or not reached
    std::vector<int32_t> at;      // by other member: the place at which the search reached the member
  };

  void FindPaths(size_t member, std::span<const double> cost, double s_per_ps);
  // Sets `path` to the links of the cheapest path between two members, the last link first.
  void PathOf(size_t from, size_t to, std::vector<LinkId>& path) const;

  const Topology& topology_;
  std::vector<Rank> members_;
  BlockedLinks blocked_;
  TreeGrower grower_;
  std::vector<int32_t> member_at_;  // by node: the index of the member there; -1: none
  std::vector<double> price_;       // by link: without the price of its latency
  std::vector<double> cost_;        // [from × members + to]: the cost of the cheapest path
  std::vector<Search> search_;      // by member
};

// Returns the cheapest tree from the root to all nodes: the parent of each node, -1 for the root. `cost` at
// [from × nodes + to] is the cost of an arc, infinite if there is no arc. Requires that the root reaches all
// nodes.
std::vector<int32_t> CheapestArborescence(int32_t nodes, int32_t root, std::span<const double> cost);

}  // namespace xccl
