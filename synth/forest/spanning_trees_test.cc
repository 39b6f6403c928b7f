#include "synth/forest/spanning_trees.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "base/random.h"

namespace xccl::forest {
namespace {

using Edges = std::vector<CapacityEdge>;

// Every partition of the nodes into at least two blocks, as block numbers in order of first node.
std::vector<std::vector<int32_t>> Partitions(int32_t nodes) {
  std::vector<std::vector<int32_t>> all = {{0}};
  for (int32_t n = 1; n < nodes; ++n) {
    std::vector<std::vector<int32_t>> longer;
    for (const std::vector<int32_t>& partition : all) {
      const int32_t blocks = *std::max_element(partition.begin(), partition.end()) + 1;
      for (int32_t b = 0; b <= blocks; ++b) {
        longer.push_back(partition);
        longer.back().push_back(b);
      }
    }
    all = std::move(longer);
  }
  std::erase_if(all,
                [](const std::vector<int32_t>& p) { return *std::max_element(p.begin(), p.end()) == 0; });
  return all;
}

// Least over partitions of (room of the edges between blocks) ÷ (blocks - 1); room is capacity × scale,
// rounded down to whole trees where `whole`.
double Worst(const Edges& edges, const std::vector<std::vector<int32_t>>& partitions, double scale,
             bool whole) {
  double worst = std::numeric_limits<double>::infinity();
  for (const std::vector<int32_t>& block_of : partitions) {
    double room = 0;
    for (const CapacityEdge& edge : edges) {
      const double exact = static_cast<double>(edge.capacity) * scale;
      if (block_of[edge.a] != block_of[edge.b]) room += whole ? std::floor(exact * (1 + 1e-9)) : exact;
    }
    worst = std::min(worst, room / *std::max_element(block_of.begin(), block_of.end()));
  }
  return worst;
}

// What is wrong with the packing; empty: every tree spans, rooted in its middle, and the rate is what the
// fullest edge allows.
std::string Wrong(const TreePacking& packing, int32_t nodes, const Edges& edges) {
  std::vector<int64_t> load(edges.size(), 0);
  for (const SpanningTree& tree : packing.trees) {
    std::vector<int32_t> depth(static_cast<size_t>(nodes), -1);
    depth[tree.root] = 0;
    for (int32_t e : tree.edges) {
      const CapacityEdge& edge = edges[e];
      if ((depth[edge.a] < 0) == (depth[edge.b] < 0)) return "an edge that does not have one end in the tree";
      (depth[edge.a] < 0 ? depth[edge.a] : depth[edge.b]) = std::max(depth[edge.a], depth[edge.b]) + 1;
      ++load[e];
    }
    if (*std::min_element(depth.begin(), depth.end()) < 0) return "a node is not in the tree";
    if (*std::max_element(depth.begin(), depth.end()) != tree.depth) return "depth";
  }
  double rate = std::numeric_limits<double>::infinity();
  for (size_t e = 0; e < edges.size(); ++e)
    if (load[e] > 0)
      rate =
          std::min(rate, static_cast<double>(edges[e].capacity * static_cast<int64_t>(packing.trees.size())) /
                             static_cast<double>(load[e]));
  if (rate != packing.rate) return "rate";
  if (packing.rate > packing.bound * (1 + 1e-12)) return "above its own bound";
  return "";
}

// The graph of the number's digits, one a pair of nodes: the capacity of its edge, 0 for none.
Edges FromDigits(int32_t nodes, int32_t number, int32_t base) {
  Edges edges;
  for (int32_t a = 0; a < nodes; ++a)
    for (int32_t b = a + 1; b < nodes; ++b, number /= base)
      if (number % base > 0) edges.push_back({a, b, number % base});
  return edges;
}

// The rate is that of the worst partition, which the packing names: exactly so where few trees do.
TEST(SpanningTrees, EveryGraphOfUpToFourNodesReachesItsStrength) {
  struct Case {
    int32_t nodes, base;
  };
  int32_t seen = 0;
  for (const Case& c : {Case{2, 5}, Case{3, 6}, Case{4, 3}}) {
    int32_t numbers = 1;
    for (int32_t pair = 0; pair < c.nodes * (c.nodes - 1) / 2; ++pair) numbers *= c.base;
    const auto partitions = Partitions(c.nodes);
    for (int32_t number = 0; number < numbers; ++number) {
      const Edges edges = FromDigits(c.nodes, number, c.base);
      const double strength = Worst(edges, partitions, 1, false);
      const std::optional<TreePacking> packing = PackSpanningTrees(c.nodes, edges);
      ASSERT_EQ(packing.has_value(), strength > 0) << c.nodes << " nodes, number " << number;
      if (!packing) continue;
      ASSERT_EQ(Wrong(*packing, c.nodes, edges), "") << c.nodes << " nodes, number " << number;
      ASSERT_DOUBLE_EQ(packing->bound, strength) << c.nodes << " nodes, number " << number;
      ASSERT_DOUBLE_EQ(packing->rate, strength) << c.nodes << " nodes, number " << number;
      ++seen;
    }
  }
  EXPECT_EQ(seen, 4 + 200 + 624);
}

Edges RandomGraph(Random& random, int32_t nodes, int64_t most) {
  Edges edges;
  for (int32_t n = 1; n < nodes; ++n)
    edges.push_back({static_cast<int32_t>(random.Below(static_cast<uint64_t>(n))), n,
                     1 + static_cast<int64_t>(random.Below(static_cast<uint64_t>(most)))});
  for (int32_t i = 0; i < 2 * nodes; ++i) {
    const int32_t a = static_cast<int32_t>(random.Below(static_cast<uint64_t>(nodes)));
    const int32_t b = static_cast<int32_t>(random.Below(static_cast<uint64_t>(nodes)));
    if (a != b) edges.push_back({a, b, 1 + static_cast<int64_t>(random.Below(static_cast<uint64_t>(most)))});
  }
  return edges;
}

TEST(SpanningTrees, RandomCapacitiesComeWithinTheToleranceOfTheStrength) {
  Random random(5);
  const auto partitions = Partitions(7);
  for (int32_t trial = 0; trial < 60; ++trial) {
    const Edges edges = RandomGraph(random, 7, trial % 3 == 0 ? 1 : 90);
    const std::optional<TreePacking> packing = PackSpanningTrees(7, edges);
    ASSERT_TRUE(packing);
    ASSERT_EQ(Wrong(*packing, 7, edges), "") << trial;
    const double strength = Worst(edges, partitions, 1, false);
    // Whole trees in each edge cost something; the bound is that of a partition that was met.
    EXPECT_GE(packing->rate, strength * (1 - 0.002)) << trial;
    EXPECT_GE(packing->bound, strength * (1 - 1e-12)) << trial;
    EXPECT_LE(packing->bound, strength * 1.002) << trial;
  }
}

// k trees fit into room floor(scale × capacity) exactly when every partition has room for k × (blocks - 1).
TEST(SpanningTrees, AGivenNumberOfTreesHasTheBestRateThatItAllows) {
  Random random(6);
  const auto partitions = Partitions(6);
  for (int32_t trial = 0; trial < 20; ++trial) {
    const Edges edges = RandomGraph(random, 6, 9);
    for (int32_t trees = 1; trees <= 7; ++trees) {
      double best = std::numeric_limits<double>::infinity();  // the least scale that is enough
      for (const CapacityEdge& edge : edges)
        for (int32_t room = 1; room <= trees; ++room) {
          const double scale = static_cast<double>(room) / static_cast<double>(edge.capacity);
          if (scale < best && Worst(edges, partitions, scale, true) >= trees) best = scale;
        }
      TreePackingLimits limits;
      limits.trees = trees;
      const std::optional<TreePacking> packing = PackSpanningTrees(6, edges, limits);
      ASSERT_TRUE(packing);
      ASSERT_EQ(Wrong(*packing, 6, edges), "");
      EXPECT_EQ(packing->trees.size(), static_cast<size_t>(trees));
      EXPECT_NEAR(packing->rate, trees / best, trees / best * 1e-9) << trial << ": " << trees << " trees";
    }
  }
}

Edges Grid(int32_t rows, int32_t columns, int64_t along, int64_t down) {
  Edges edges;
  for (int32_t r = 0; r < rows; ++r)
    for (int32_t c = 0; c < columns; ++c) {
      if (c + 1 < columns) edges.push_back({r * columns + c, r * columns + c + 1, along});
      if (r + 1 < rows) edges.push_back({r * columns + c, (r + 1) * columns + c, down});
    }
  return edges;
}

// n × n: 2n ÷ (n + 1). Depths beside the least that any tree has, the radius.
TEST(SpanningTrees, Grids) {
  struct Case {
    int32_t rows, columns;
    int64_t along, down;
    double bound, loss;  // loss: relative
    int32_t radius, depth;
  };
  for (const Case& c : std::vector<Case>{
           {3, 3, 1, 1, 6.0 / 4, 0, 2, 3},
           {4, 4, 1, 1, 8.0 / 5, 0, 4, 5},
           {5, 5, 1, 1, 10.0 / 6, 0, 4, 5},
           {6, 6, 1, 1, 12.0 / 7, 0, 6, 7},
           {8, 8, 1, 1, 16.0 / 9, 0, 8, 10},
           {5, 5, 50, 75, 2500.0 / 24, 0, 4, 6},
           {8, 5, 80, 35, 3785.0 / 39, 6e-4, 6, 9},
           {7, 10, 16, 73, 5388.0 / 69, 7e-4, 8, 13},  // sums cross the thin cables in few rows, hence deep
           {16, 16, 1, 1, 32.0 / 17, 0, 16, 19},
           {1, 9, 1, 1, 1, 0, 4, 4},
       }) {
    const std::string name = std::to_string(c.rows) + "x" + std::to_string(c.columns);
    const Edges edges = Grid(c.rows, c.columns, c.along, c.down);
    const std::optional<TreePacking> packing = PackSpanningTrees(c.rows * c.columns, edges);
    ASSERT_TRUE(packing);
    EXPECT_EQ(Wrong(*packing, c.rows * c.columns, edges), "") << name;
    EXPECT_DOUBLE_EQ(packing->bound, c.bound) << name;
    EXPECT_GE(packing->rate, c.bound * (1 - c.loss) - 1e-12) << name;
    int32_t depth = 0;
    for (const SpanningTree& tree : packing->trees) {
      depth = std::max(depth, tree.depth);
      EXPECT_GE(tree.depth, c.radius) << name;
    }
    EXPECT_LE(depth, c.depth) << name;
  }
}

// Two squares of thick edges joined by one thin one: the worst partition is not each node alone.
TEST(SpanningTrees, TheWorstPartitionIsFound) {
  const Edges edges = {{0, 1, 9}, {1, 2, 9}, {2, 3, 9}, {3, 0, 9}, {4, 5, 9},
                       {5, 6, 9}, {6, 7, 9}, {7, 4, 9}, {3, 4, 1}};
  const std::optional<TreePacking> packing = PackSpanningTrees(8, edges);
  ASSERT_TRUE(packing);
  EXPECT_EQ(Wrong(*packing, 8, edges), "");
  EXPECT_EQ(packing->rate, 1);
  EXPECT_EQ(packing->bound, 1);
}

// All but one cable of a ring, the thin one rarely among them. Exchanges turn half of the ring round.
TEST(SpanningTrees, RingsWithASlowEdgeEndAndReachTheirStrength) {
  for (int32_t nodes = 3; nodes <= 16; ++nodes)
    for (int32_t slow = 0; slow < nodes; ++slow)
      for (const int64_t capacity : {2, 3, 130}) {
        if (capacity > 3 && nodes > 6) continue;
        Edges edges;
        for (int32_t n = 0; n < nodes; ++n) edges.push_back({n, (n + 1) % nodes, n == slow ? 1 : capacity});
        const std::optional<TreePacking> packing = PackSpanningTrees(nodes, edges);
        ASSERT_TRUE(packing);
        ASSERT_EQ(Wrong(*packing, nodes, edges), "") << nodes << ", " << slow;
        const double strength = static_cast<double>(capacity * (nodes - 1) + 1) / (nodes - 1);
        EXPECT_DOUBLE_EQ(packing->bound, strength);
        // Where the edge is very thin a number of trees that is large enough to use it may be too many.
        EXPECT_GE(packing->rate, std::min(strength * 0.999, capacity * 1.0)) << nodes << ", " << slow;
      }
}

TEST(SpanningTrees, ToriWithASlowOrDeadEdgeReachTheirStrength) {
  for (const int64_t capacity : {0, 1, 2, 3}) {
    Edges edges;
    for (int32_t n = 0; n < 64; ++n) {
      const int32_t row = n / 8, column = n % 8;
      edges.push_back({n, row * 8 + (column + 1) % 8, 4});
      edges.push_back({n, (row + 1) % 8 * 8 + column, 4});
    }
    edges[0].capacity = capacity;
    if (capacity == 0) edges.erase(edges.begin());
    const std::optional<TreePacking> packing = PackSpanningTrees(64, edges);
    ASSERT_TRUE(packing);
    EXPECT_EQ(Wrong(*packing, 64, edges), "");
    EXPECT_DOUBLE_EQ(packing->bound, static_cast<double>(508 + capacity) / 63);
    EXPECT_GE(packing->rate, packing->bound * (1 - kTreeTolerance));
  }
}

TEST(SpanningTrees, StopsWhenItIsToldTo) {
  TreePackingLimits limits;
  int32_t asked = 0;
  limits.stopped = [&] { return ++asked > 3; };
  const Edges edges = Grid(8, 8, 1, 1);
  const std::optional<TreePacking> packing = PackSpanningTrees(64, edges, limits);
  ASSERT_TRUE(packing);
  EXPECT_EQ(Wrong(*packing, 64, edges), "");
  EXPECT_EQ(asked, 4);
}

TEST(SpanningTrees, NoneWhereThereIsNoTree) {
  EXPECT_FALSE(PackSpanningTrees(1, Edges{}));
  EXPECT_FALSE(PackSpanningTrees(2, Edges{}));
  EXPECT_FALSE(PackSpanningTrees(3, Edges{{0, 1, 1}, {0, 1, 4}}));
  EXPECT_FALSE(PackSpanningTrees(2, Edges{{0, 1, int64_t{1} << 40}}));
}

TEST(SpanningTrees, WorkThatRunsOutLeavesTreesWithALowerRate) {
  TreePackingLimits limits;
  limits.work = 1;
  const Edges edges = Grid(8, 8, 1, 1);
  const std::optional<TreePacking> packing = PackSpanningTrees(64, edges, limits);
  ASSERT_TRUE(packing);
  EXPECT_EQ(Wrong(*packing, 64, edges), "");
  EXPECT_LT(packing->rate, 16.0 / 9);
  EXPECT_GT(packing->rate, 1);
}

}  // namespace
}  // namespace xccl::forest
