// Trees that all grow from one root over links of given room: as many as the least cut from the root allows
// (Edmonds, 1973), each as shallow as it goes together with the others.
//
// In: a directed graph, a root, how many trees each arc may be in. Out: k trees, or none where a cut has less
// room than k. Cost: trees × arcs tests, each a flow of at most k that mostly stays near its sink; where arcs
// are plenty (full meshes) trees × arcs steps; up to 64 times that on small graphs, for less depth. Source:
// Berczi and Frank (2010), here with breadth first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/graph/cut_search.h"

namespace xccl::forest {

struct Arborescence {
  std::vector<int32_t> arcs;  // parents first; one into every node but the root
  int32_t depth = 0;
};

int32_t DepthOf(std::span<const Arborescence> trees);  // the deepest one's

inline constexpr int32_t kMostArborescences = 64;  // beyond, only where no flows are needed

// An arc's capacity is how many trees it may be in. nullopt: there are no k such trees; or more than
// kMostArborescences are asked for and were not found by growing them side by side without looking ahead.
// Requires: k >= 1.
std::optional<std::vector<Arborescence>> PackArborescences(int32_t nodes, int32_t root, int32_t k,
                                                           std::span<const CapacityArc> arcs);

}  // namespace xccl::forest
