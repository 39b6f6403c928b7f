// The most spanning trees that an undirected graph with capacities holds: as much as the worst partition
// allows (Tutte and Nash-Williams, 1961), as few and as shallow trees as that goes with.
//
// In: edges with capacities. Out: trees of equal weight, and a bound that no trees exceed, by a partition.
// Cost: a search is trees × edges, a hundred searches are usual. Source: matroid union by shortest augmenting
// paths (Edmonds, 1965; Roskind and Tarjan, 1985).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace xccl::forest {

struct CapacityEdge {
  int32_t a = 0, b = 0;  // different
  int64_t capacity = 0;  // > 0, in any unit
};

struct SpanningTree {
  int32_t root = 0;            // in the middle of a longest path, so that the depth is least
  int32_t depth = 0;           // of the deepest node
  std::vector<int32_t> edges;  // parents first: each has one end in the tree before it
};

struct TreePacking {
  std::vector<SpanningTree> trees;
  // Each of k trees can carry k_th of `rate`, in the unit of the capacities: rate = k ÷ the most trees that
  // an edge is in, per capacity.
  double rate = 0;
  // No trees, of whatever number, carry more: the capacity between the blocks of the worst partition found ÷
  // (blocks - 1).
  double bound = 0;
};

struct TreePackingLimits {
  // Exactly so many. Absent: as few as come within kTreeTolerance of the bound, else the best number up to
  // 32,768 ÷ nodes, but 128 to 1,024.
  std::optional<int32_t> trees;
  int64_t work = 300'000'000;  // steps of the searches; after that the best so far, with some edges fuller
  std::function<bool()> stopped = {};  // likewise; asked before each search
};
inline constexpr double kTreeTolerance = 5e-4;

// Exact for its number of trees: no such number of trees has a higher rate. (But for `work`.) nullopt: the
// graph is not connected, has fewer than 2 nodes, or capacities above 2^40 in sum.
std::optional<TreePacking> PackSpanningTrees(int32_t nodes, std::span<const CapacityEdge> edges,
                                             const TreePackingLimits& limits = {});

}  // namespace xccl::forest
