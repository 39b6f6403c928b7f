// The cheapest broadcast tree at given prices of links, where TreeGrower's is only cheap: exact where the
// directions of cables cost differently, too. Switches do not branch.
//
// Source: Chu and Liu (1965), Edmonds (1967), on the cheapest paths between members.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "synth/common/tree_grower.h"
#include "topologies/topology.h"

namespace xccl {

class CheapestTrees {
 public:
  CheapestTrees(const Topology& topology, std::span<const Rank> members);

  // For the trees that follow. cost: by link; s_per_ps: cost of a picosecond of each arc. Cost: a search for
  // cheapest paths a member.
  void SetPrices(std::span<const double> cost, double s_per_ps);

  // As TreeGrower::Grow. Requires: SetPrices; every member can be reached. Cost: members² a contraction of
  // circles, of which there are at most as many as members.
  GrownTree Grow(Rank root, std::vector<LinkId>& links);

 private:
  void FindPaths(size_t member, std::span<const double> cost, double s_per_ps);

  const Topology& topology_;
  std::vector<Rank> members_;
  TreeGrower grower_;
  std::vector<int32_t> member_at_;        // by node; -1: none
  std::vector<double> price_;             // of a link, beside that of its latency
  std::vector<double> cost_;              // [from × members + to], of the path
  std::vector<std::vector<LinkId>> via_;  // by member and node: the last link of the path there
};

// The arc into each node of the cheapest tree from the root, as the node that it comes from; -1 at the root.
// cost: [from × nodes + to], infinite where there is no arc. Requires: the root reaches all nodes.
std::vector<int32_t> CheapestArborescence(int32_t nodes, int32_t root, std::span<const double> cost);

}  // namespace xccl
