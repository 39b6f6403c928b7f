// Packs arborescences: trees of arcs that lead away from one root. There can be as many trees as the least
// cut from the root allows (Edmonds, 1973). The search prefers shallow trees.
//
// Input: a directed graph, a root, and for each arc the number of trees that may use it. Output: k trees, or
// none if some cut has less capacity than k. Cost: trees × arcs tests. A test is a flow of at most k units,
// which mostly stays near its sink. If arcs are plentiful, as in full meshes, the cost is trees × arcs steps
// without tests. On small graphs the trees are grown up to 65 times, to find shallower trees. Source: Berczi
// and Frank (2010), here breadth-first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/graph/cut_search.h"

namespace xccl::forest {

struct Arborescence {
  std::vector<int32_t> arcs;  // parents first; one arc into every node except the root
  int32_t depth = 0;
};

int32_t DepthOf(std::span<const Arborescence> trees);  // depth of the deepest tree

// The most trees that are grown with tests. A test keeps sets of trees in 64 bits.
inline constexpr int32_t kMostArborescences = 64;

// Packs k >= 1 trees. An arc's capacity is the number of trees that may use the arc. Returns nullopt if no k
// trees exist, or if k > kMostArborescences and growing without tests does not find the trees.
std::optional<std::vector<Arborescence>> PackArborescences(int32_t nodes, int32_t root, int32_t k,
                                                           std::span<const CapacityArc> arcs);

}  // namespace xccl::forest
