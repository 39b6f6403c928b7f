// The cheapest broadcast tree at given prices of links, where TreeGrower's is only cheap: exact where the
// directions of cables cost differently, too. Switches do not branch. Links cost more where slower ones feed
// them (synth/common/held.h).
//
// Source: Chu and Liu (1965), Edmonds (1967), on the cheapest paths between members.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "synth/common/held.h"
#include "synth/common/tree_grower.h"
#include "topologies/topology.h"

namespace xccl {

class CheapestTrees {
 public:
  CheapestTrees(const Topology& topology, std::span<const Rank> members, HeldLinks held);

  // For the trees that follow. cost: by link; s_per_ps: cost of a picosecond of each arc. Cost: a search for
  // cheapest paths a member.
  void SetPrices(std::span<const double> cost, double s_per_ps);

  // As TreeGrower::Grow; the tree's cost is without what links are held. Requires: SetPrices; every member
  // can be reached. Cost: members² a contraction of circles, of which there are at most as many as members.
  GrownTree Grow(Rank root, std::vector<LinkId>& links);

 private:
  // From or to one member. Its places are nodes, each with the slowest link between it and the member.
  struct Search {
    std::vector<LinkId> via;      // by place: the link next to it, towards the member
    std::vector<int32_t> before;  // by place: that at the link's other end; -1: the member's, or not reached
    std::vector<int32_t> at;      // by other member: its place
  };

  void FindPaths(size_t member, std::span<const double> cost, double s_per_ps);
  // The links of the cheapest path between two members, the last one first.
  void PathOf(size_t from, size_t to, std::vector<LinkId>& path) const;

  const Topology& topology_;
  std::vector<Rank> members_;
  HeldLinks held_;
  TreeGrower grower_;
  std::vector<int32_t> member_at_;  // by node; -1: none
  std::vector<double> price_;       // of a link, beside that of its latency
  std::vector<double> cost_;        // [from × members + to], of the path
  std::vector<Search> search_;      // by member
};

// The arc into each node of the cheapest tree from the root, as the node that it comes from; -1 at the root.
// cost: [from × nodes + to], infinite where there is no arc. Requires: the root reaches all nodes.
std::vector<int32_t> CheapestArborescence(int32_t nodes, int32_t root, std::span<const double> cost);

}  // namespace xccl
