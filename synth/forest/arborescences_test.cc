#include "synth/forest/arborescences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/graph/min_cut.h"
#include "base/random.h"

namespace xccl::forest {
namespace {

using Arcs = std::vector<CapacityArc>;

int64_t LeastFlow(int32_t nodes, int32_t root, const Arcs& arcs) {
  int64_t least = kUnlimitedCapacity;
  for (int32_t n = 0; n < nodes; ++n)
    if (n != root) least = std::min(least, FindMinCut(nodes, arcs, root, n).capacity);
  return least;
}

// Empty: k trees from the root that reach every node once, parents first, within the room.
std::string Wrong(const std::vector<Arborescence>& trees, int32_t nodes, int32_t root, int32_t k,
                  const Arcs& arcs) {
  if (trees.size() != static_cast<size_t>(k)) return "number of trees";
  std::vector<int32_t> load(arcs.size(), 0);
  for (const Arborescence& tree : trees) {
    std::vector<int32_t> level(static_cast<size_t>(nodes), -1);
    level[root] = 0;
    for (int32_t a : tree.arcs) {
      if (level[arcs[a].from] < 0 || level[arcs[a].to] >= 0) return "not a tree";
      level[arcs[a].to] = level[arcs[a].from] + 1;
      ++load[a];
    }
    if (*std::min_element(level.begin(), level.end()) < 0) return "a node is not reached";
    if (*std::max_element(level.begin(), level.end()) != tree.depth) return "depth";
  }
  for (size_t a = 0; a < arcs.size(); ++a)
    if (load[a] > arcs[a].capacity) return "room";
  return "";
}

// As many as the least cut allows, and no more.
void ExpectAsManyAsTheCut(int32_t nodes, const Arcs& arcs, const std::string& where) {
  const int64_t least = LeastFlow(nodes, 0, arcs);
  for (int32_t k = 1; k <= least; ++k) {
    const auto trees = PackArborescences(nodes, 0, k, arcs);
    ASSERT_TRUE(trees) << where << ": " << k << " of " << least;
    ASSERT_EQ(Wrong(*trees, nodes, 0, k, arcs), "") << where << ": " << k << " of " << least;
  }
  EXPECT_FALSE(PackArborescences(nodes, 0, static_cast<int32_t>(least) + 1, arcs)) << where;
}

TEST(Arborescences, EveryDigraphOfThreeNodesWithRoomUpToThree) {
  for (int32_t number = 0; number < 4096; ++number) {
    Arcs arcs;
    int32_t digits = number;
    for (int32_t a = 0; a < 3; ++a)
      for (int32_t b = 0; b < 3; ++b)
        if (a != b) arcs.push_back({a, b, digits % 4}), digits /= 4;
    ExpectAsManyAsTheCut(3, arcs, std::to_string(number));
  }
}

TEST(Arborescences, EveryDigraphOfFourNodes) {
  for (int32_t number = 0; number < 4096; ++number) {
    Arcs arcs;
    int32_t bits = number;
    for (int32_t a = 0; a < 4; ++a)
      for (int32_t b = 0; b < 4; ++b)
        if (a != b) arcs.push_back({a, b, 1 + bits % 2}), bits /= 2;
    std::erase_if(arcs, [](const CapacityArc& arc) { return arc.capacity == 2 && arc.from + arc.to == 3; });
    ExpectAsManyAsTheCut(4, arcs, std::to_string(number));
  }
}

TEST(Arborescences, RandomDigraphs) {
  Random random(3);
  for (int32_t trial = 0; trial < 300; ++trial) {
    const int32_t nodes = 5 + static_cast<int32_t>(random.Below(12));
    const uint64_t n = static_cast<uint64_t>(nodes);
    Arcs arcs;
    for (int32_t i = 0; i < 4 * nodes; ++i) {
      const int32_t from = static_cast<int32_t>(random.Below(n)), to = static_cast<int32_t>(random.Below(n));
      if (from != to) arcs.push_back({from, to, 1 + static_cast<int32_t>(random.Below(3))});
    }
    ExpectAsManyAsTheCut(nodes, arcs, "trial " + std::to_string(trial));
  }
}

Arcs Grid(int32_t side, bool wrap) {
  Arcs arcs;
  const auto join = [&](int32_t a, int32_t b) { arcs.insert(arcs.end(), {{a, b, 1}, {b, a, 1}}); };
  for (int32_t r = 0; r < side; ++r)
    for (int32_t c = 0; c < side; ++c) {
      if (c + 1 < side || wrap) join(r * side + c, r * side + (c + 1) % side);
      if (r + 1 < side || wrap) join(r * side + c, (r + 1) % side * side + c);
    }
  return arcs;
}

Arcs Hypercube(int32_t dim) {
  Arcs arcs;
  for (int32_t n = 0; n < 1 << dim; ++n)
    for (int32_t bit = 0; bit < dim; ++bit) arcs.push_back({n, n ^ (1 << bit), 1});
  return arcs;
}

Arcs FullMesh(int32_t nodes) {
  Arcs arcs;
  for (int32_t a = 0; a < nodes; ++a)
    for (int32_t b = 0; b < nodes; ++b)
      if (a != b) arcs.push_back({a, b, 1});
  return arcs;
}

// Every link into every node is used (on meshes: into the corners). Depths: what other orders of the arcs
// come to; document order comes to 13, 61, 21 and 11.
TEST(Arborescences, RegularMachines) {
  struct Case {
    std::string name;
    int32_t nodes, k;
    Arcs arcs;
    int32_t depth;
  };
  for (const Case& c : std::vector<Case>{
           {"torus 8x8", 64, 4, Grid(8, true), 11},
           {"torus 32x32", 1024, 4, Grid(32, true), 50},
           {"mesh 8x8 from a corner", 64, 2, Grid(8, false), 14},
           {"hypercube 6", 64, 6, Hypercube(6), 8},
           {"full mesh 8", 8, 7, FullMesh(8), 2},
           {"full mesh 128, beyond what is tested with flows", 128, 127, FullMesh(128), 2},
       }) {
    const auto trees = PackArborescences(c.nodes, 0, c.k, c.arcs);
    ASSERT_TRUE(trees) << c.name;
    EXPECT_EQ(Wrong(*trees, c.nodes, 0, c.k, c.arcs), "") << c.name;
    for (const Arborescence& tree : *trees) EXPECT_LE(tree.depth, c.depth) << c.name;
    EXPECT_FALSE(PackArborescences(c.nodes, 0, c.k + 1, c.arcs)) << c.name;
  }
}

}  // namespace
}  // namespace xccl::forest
