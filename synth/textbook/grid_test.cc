#include "synth/textbook/grid.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "synth/common/test_machines.h"
#include "synth/textbook/rings.h"

namespace xccl {
namespace {

using testing::MakeCluster;
using testing::MakeDgx1;
using testing::MakeFullMesh;
using testing::MakeGraph;
using testing::MakeGrid;
using testing::MakeHypercube;
using testing::MakeRing;
using testing::MakeSwitch;

// Each cycle visits every vertex once along links, and no edge is used twice.
void ExpectDisjoint(const std::vector<std::vector<int32_t>>& cycles, const RankGraph& graph) {
  std::set<std::pair<int32_t, int32_t>> edges;
  for (const std::vector<int32_t>& cycle : cycles) {
    EXPECT_EQ(static_cast<int32_t>(std::set<int32_t>(cycle.begin(), cycle.end()).size()), graph.num_ranks());
    EXPECT_EQ(static_cast<int32_t>(cycle.size()), graph.num_ranks());
    for (size_t i = 0; i < cycle.size(); ++i) {
      const int32_t a = cycle[i], b = cycle[(i + 1) % cycle.size()];
      EXPECT_TRUE(graph.Find(Rank(a), Rank(b)).has_value()) << a << "-" << b;
      EXPECT_TRUE(edges.insert(std::minmax(a, b)).second) << a << "-" << b << " twice";
    }
  }
}

TEST(Grid, IsDetectedAndDecomposed) {
  struct Case {
    std::vector<int32_t> dims;
    bool wrap;
    int32_t cycles;
  };
  const Case cases[] = {
      {{5}, true, 1},        {{16}, true, 1},       {{5}, false, 0},          {{3, 3}, true, 2},
      {{4, 4}, true, 2},     {{5, 7}, true, 2},     {{8, 8}, true, 2},        {{32, 32}, true, 2},
      {{3, 4, 5}, true, 3},  {{4, 4, 4}, true, 3},  {{8, 8, 8}, true, 3},     {{3, 3, 3, 3}, true, 4},
      {{2, 2}, false, 1},    {{2, 2, 2}, false, 1}, {{2, 2, 2, 2}, false, 2}, {{2, 2, 2, 2, 2}, false, 2},
      {{4, 4}, false, 1},    {{4, 5}, false, 1},    {{5, 4}, false, 1},       {{3, 3}, false, 0},
      {{3, 4, 5}, false, 1}, {{2, 8}, true, 1},     {{8, 2}, true, 1},        {{2, 2, 8}, true, 2},
      {{16, 2, 4}, true, 2},
  };
  for (const Case& c : cases) {
    const Topology topology = MakeGrid(c.dims, c.wrap);
    const RankGraph graph(topology);
    const std::optional<Grid> grid = DetectGrid(graph);
    ASSERT_TRUE(grid.has_value()) << fmt::format("{}", fmt::join(c.dims, "x"));
    EXPECT_EQ(grid->dims, c.dims);
    const std::vector<std::vector<int32_t>> cycles = DisjointCycles(*grid);
    EXPECT_EQ(static_cast<int32_t>(cycles.size()), c.cycles)
        << fmt::format("{} {}", fmt::join(c.dims, "x"), c.wrap);
    ExpectDisjoint(cycles, graph);
  }
}

TEST(Grid, OthersAreNot) {
  EXPECT_FALSE(DetectGrid(RankGraph(MakeFullMesh(5))).has_value());
  EXPECT_FALSE(DetectGrid(RankGraph(MakeSwitch(4))).has_value());
  EXPECT_FALSE(DetectGrid(RankGraph(MakeDgx1())).has_value());
  EXPECT_FALSE(DetectGrid(RankGraph(MakeGraph(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 2}}))).has_value());
}

TEST(CompleteCycles, ShareNoEdge) {
  for (int32_t n : {3, 4, 5, 6, 7, 8, 9, 16, 17}) {
    const Topology topology = MakeFullMesh(n);
    const std::vector<std::vector<int32_t>> cycles = CompleteCycles(n);
    EXPECT_EQ(static_cast<int32_t>(cycles.size()), (n - 1) / 2) << n;
    ExpectDisjoint(cycles, RankGraph(topology));
  }
}

struct RingsCase {
  std::string name;
  Topology topology;
  int32_t rings;
  int64_t gb_per_s;  // of each
};

TEST(PlaceRings, UseTheLinks) {
  const RingsCase cases[] = {
      {"ring", MakeRing(8), 2, 10},
      {"torus", MakeGrid({4, 4}, true), 4, 10},
      {"mesh", MakeGrid({4, 4}, false), 2, 10},
      {"full mesh of 8", MakeFullMesh(8), 6, 10},
      {"full mesh of 2", MakeFullMesh(2), 1, 10},
      {"switch", MakeSwitch(8), 1, 10},
      {"hypercube", MakeHypercube(4), 4, 10},
      {"dgx1: every link both ways", MakeDgx1(), 6, 25},
      {"cluster: a ring a NIC", MakeCluster(2, 4), 4, 10},
      {"cluster of 3", MakeCluster(3, 4), 4, 10},
      {"ring with a chord", MakeGraph(6, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}, {0, 3}}), 2, 10},
  };
  for (const RingsCase& c : cases) {
    const RankGraph graph(c.topology);
    const std::vector<Rank> members = AllRanks(c.topology.num_ranks());
    const StatusOr<Rings> rings = PlaceRings(graph, members, "ring");
    ASSERT_TRUE(rings.ok()) << c.name << ": " << rings.status().message();
    EXPECT_EQ(static_cast<int32_t>(rings->rings.size()), c.rings) << c.name;
    EXPECT_EQ(rings->bandwidth_bytes_per_s, c.gb_per_s * 1'000'000'000) << c.name;
    std::vector<int64_t> load(static_cast<size_t>(c.topology.num_links()), 0);
    for (const Ring& ring : rings->rings) {
      EXPECT_EQ(std::set<Rank>(ring.order.begin(), ring.order.end()).size(), members.size()) << c.name;
      for (size_t i = 0; i < ring.order.size(); ++i) {
        EXPECT_EQ(graph.hop(ring.hops[i]).from, ring.order[i]);
        EXPECT_EQ(graph.hop(ring.hops[i]).to, ring.order[(i + 1) % ring.order.size()]);
        for (LinkId l : graph.Links(ring.hops[i])) load[l.index()] += rings->bandwidth_bytes_per_s;
      }
    }
    for (int32_t l = 0; l < c.topology.num_links(); ++l)
      EXPECT_LE(load[static_cast<size_t>(l)], c.topology.link(LinkId(l)).bandwidth_bytes_per_s) << c.name;
  }
}

TEST(PlaceRings, SaysWhenThereIsNone) {
  const Topology topology = MakeGrid({3, 3}, false);
  const std::vector<Rank> members = AllRanks(9);
  EXPECT_EQ(PlaceRings(RankGraph(topology), members, "ring").status(),
            InvalidInput("ring: found no cycle through all 9 ranks over paths between neighbours; hint: "
                         "--engine=greedy"));
}

}  // namespace
}  // namespace xccl
