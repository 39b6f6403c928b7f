// Packs spanning trees into an undirected graph with capacities. Their rate is near the highest, which the
// worst partition of the nodes limits (Tutte and Nash-Williams, 1961). Few and shallow trees are preferred.
//
// Input: edges with capacities. Output: trees of equal weight, and an upper bound on the rate of any trees,
// given by a partition. Cost: a search takes trees × edges, and about a hundred searches are usual. Source:
// matroid union by shortest augmenting paths (Edmonds, 1965; Roskind and Tarjan, 1985).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace xccl::forest {

struct CapacityEdge {
  int32_t a = 0, b = 0;  // two different nodes
  int64_t capacity = 0;  // > 0, in any unit
};

struct SpanningTree {
  int32_t root = 0;            // in the middle of a longest path, so that the depth is least
  int32_t depth = 0;           // depth of the deepest node
  std::vector<int32_t> edges;  // parents first: each edge has one end in the tree of the edges before it
};

struct TreePacking {
  std::vector<SpanningTree> trees;
  // The rate of all k trees together, in the unit of the capacities. Each tree carries rate ÷ k. The rate is
  // the least of k × capacity ÷ (number of trees with the edge) over all edges that trees use.
  double rate = 0;
  // No trees have a higher rate, whatever their number. The bound is the capacity between the blocks of the
  // worst partition found ÷ (blocks - 1).
  double bound = 0;
};

struct TreePackingLimits {
  // The exact number of trees. Absent: the least number that comes within kTreeTolerance of the bound, else
  // the best number up to a limit. The limit is 32,768 ÷ nodes, but at least 128 and at most 1,024.
  std::optional<int32_t> trees;
  // The most steps of the searches. If they are used up, the rate may be lower than this number of trees
  // allows.
  int64_t work = 300'000'000;
  std::function<bool()> stopped = {};  // asked before each search; true has the effect of used-up work
};
inline constexpr double kTreeTolerance = 5e-4;  // a rate may miss the bound by this fraction

// Packs spanning trees. No other packing of equally many trees has a higher rate, unless `work` or `stopped`
// ends the search. Returns nullopt if the graph is not connected, has fewer than 2 nodes, or has capacities
// that add up to 2^40 or more.
std::optional<TreePacking> PackSpanningTrees(int32_t nodes, std::span<const CapacityEdge> edges,
                                             const TreePackingLimits& limits = {});

}  // namespace xccl::forest
