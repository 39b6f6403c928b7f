#include "synth/common/fractional_packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "synth/common/test_machines.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

// By root: how many trees, and the sum of their weights.
void ExpectTreesOfEveryRoot(const PackingProblem& problem, const FractionalPacking& packing) {
  std::vector<double> sum(problem.roots.size(), 0.0);
  for (const FractionalTree& tree : packing.trees) {
    sum[static_cast<size_t>(tree.root)] += tree.weight;
    EXPECT_EQ(tree.arcs.size(), problem.members.size() - 1);
  }
  for (const double weight : sum) EXPECT_NEAR(weight, 1, 1e-12);
}

// An allgather of one byte in all: 15/16 of it come in over the links of a rank, each 10 GB/s.
TEST(FractionalPacking, MeetsWhatEntersARank) {
  struct Case {
    std::string name;
    Topology topology;
    double ns_per_byte;
  };
  for (const Case& c : std::vector<Case>{{"ring 4", testing::MakeRing(4), 0.75 / 20},
                                         {"torus 4x4", testing::MakeGrid({4, 4}, true), 0.9375 / 40},
                                         {"mesh 4x4", testing::MakeGrid({4, 4}, false), 0.9375 / 20},
                                         {"full mesh 4", testing::MakeFullMesh(4), 0.75 / 30},
                                         {"switch 4", testing::MakeSwitch(4), 0.75 / 10}}) {
    SCOPED_TRACE(c.name);
    PackingProblem problem = PlainPacking(c.topology, AllRanks(c.topology.num_ranks()));
    problem.demand.assign(problem.roots.size(), 1.0 / static_cast<double>(problem.roots.size()));
    const FractionalPacking packing = PackTrees(problem);
    ExpectTreesOfEveryRoot(problem, packing);
    EXPECT_NEAR(packing.s_per_byte * 1e9, c.ns_per_byte, c.ns_per_byte * 2e-5);
  }
}

TEST(FractionalPacking, RootsWithAlmostNothingHaveTreesToo) {
  for (const Topology& topology : {testing::MakeRing(8), testing::MakeGrid({2, 4}, false)}) {
    for (const double little : {1e-6, 1e-8, 1e-12}) {
      PackingProblem problem = PlainPacking(topology, AllRanks(topology.num_ranks()));
      problem.demand.assign(problem.roots.size(), little);
      problem.demand[1] = problem.demand[4] = 0.5;
      const FractionalPacking packing = PackTrees(problem);
      ExpectTreesOfEveryRoot(problem, packing);
      std::vector<PartId> parts;
      for (int64_t p = 0; p < 8; ++p) parts.emplace_back(p);
      std::vector<int64_t> trees(8, 0);
      for (const PackedTree& tree : RoundToPackedTrees(packing, problem.roots, parts).trees)
        ++trees[tree.root.index()];
      EXPECT_GT(*std::ranges::min_element(trees), 0) << little;
    }
  }
}

// One root and two kinds of links stand for all.
TEST(FractionalPacking, OrbitsAreAsGoodAsAllRootsOneByOne) {
  const Topology torus = testing::MakeGrid({4, 4}, true);
  const SymmetryGroup group = FindTranslations(torus);
  ASSERT_EQ(group.num_rank_orbits(), 1);
  PackingProblem problem = PlainPacking(torus, AllRanks(torus.num_ranks()));
  problem.roots = {group.Representative(0)};
  problem.demand = {1.0 / 16};
  for (int32_t l = 0; l < torus.num_links(); ++l)
    problem.orbit[static_cast<size_t>(l)] = group.OrbitOf(LinkId(l));
  problem.share.clear();
  for (int32_t o = 0; o < group.num_link_orbits(); ++o) problem.share.push_back(group.LinkShare(o));
  const FractionalPacking packing = PackTrees(problem);
  ExpectTreesOfEveryRoot(problem, packing);
  EXPECT_NEAR(packing.s_per_byte * 1e9, 0.9375 / 40, 0.9375 / 40 * 2e-5);
}

TEST(FractionalPacking, StopsWhereItIsToldThatNothingIsBetter) {
  const Topology mesh = testing::MakeGrid({4, 4}, false);
  PackingProblem problem = PlainPacking(mesh, AllRanks(mesh.num_ranks()));
  const FractionalPacking whole = PackTrees(problem);
  problem.known_bound_s_per_byte = 1.3 * whole.s_per_byte;
  const FractionalPacking stopped = PackTrees(problem);
  EXPECT_LT(stopped.rounds, whole.rounds);
  EXPECT_GT(stopped.s_per_byte, whole.s_per_byte);
  EXPECT_LE(stopped.s_per_byte, problem.known_bound_s_per_byte * (1 + problem.gap));
  ExpectTreesOfEveryRoot(problem, stopped);
  problem.known_bound_s_per_byte = 0;
  problem.max_rounds = 1;
  EXPECT_EQ(PackTrees(problem).rounds, 1);
}

TEST(FractionalPacking, BeginsWithTheTreesOfAnother) {
  const Topology mesh = testing::MakeGrid({4, 4}, false);
  PackingProblem problem = PlainPacking(mesh, AllRanks(mesh.num_ranks()));
  problem.known_bound_s_per_byte = 15.0 / 20e9;
  const FractionalPacking alone = PackTrees(problem);
  EXPECT_GT(alone.rounds, 1);
  problem.start = &alone;
  const FractionalPacking after = PackTrees(problem);
  EXPECT_EQ(after.rounds, 1);
  ExpectTreesOfEveryRoot(problem, after);
  EXPECT_NEAR(after.s_per_byte / alone.s_per_byte, 1, 2e-5);
}

// The worst link of `packing`, from its trees alone.
double LoadOf(const PackingProblem& problem, const FractionalPacking& packing) {
  std::vector<double> bytes(static_cast<size_t>(problem.topology->num_links()), 0.0);
  for (const FractionalTree& tree : packing.trees)
    for (const PackedArc& arc : tree.arcs)
      for (const LinkId link : packing.Links(arc))
        bytes[link.index()] += tree.weight * problem.demand[static_cast<size_t>(tree.root)];
  double load = 0;
  for (int32_t l = 0; l < problem.topology->num_links(); ++l)
    load = std::max(load, bytes[static_cast<size_t>(l)] /
                              static_cast<double>(problem.topology->link(LinkId(l)).bandwidth_bytes_per_s));
  return load;
}

// More trees are made than the program keeps: 5 × 6 roots on 98 links.
TEST(FractionalPacking, TreesThatLeaveAreNotMissed) {
  TopologySpec spec = testing::MakeGrid({5, 6}, false).spec();
  for (size_t l = 0; l < spec.links.size(); ++l)
    spec.links[l].bandwidth_bytes_per_s += static_cast<int64_t>(l * l % 7) * 1'000'000'000;
  const Topology mesh = Topology::Create(spec).value();
  const PackingProblem problem = PlainPacking(mesh, AllRanks(mesh.num_ranks()));
  const FractionalPacking packing = PackTrees(problem);
  EXPECT_GT(packing.rounds * 30, 2 * (98 + 30));
  ExpectTreesOfEveryRoot(problem, packing);
  EXPECT_NEAR(LoadOf(problem, packing) / packing.s_per_byte, 1, 0.01);
}

TEST(FractionalPacking, RoundToIntegerWeights) {
  struct Case {
    std::vector<double> shares;
    std::vector<int64_t> whole;
  };
  for (const Case& c : std::vector<Case>{
           {{1.0}, {1}},
           {{0.5, 0.5}, {1, 1}},
           {{1.0 / 3, 2.0 / 3}, {1, 2}},
           {{1.0 / 3, 1.0 / 4, 5.0 / 12}, {4, 3, 5}},
           {{5.0 / 128, 123.0 / 128}, {5, 123}},
           {{1, 0}, {1, 0}},
           {{1.0 / 129, 128.0 / 129}, {8128, 1040448}},  // no simple fraction: of 2^20
           {{1 - 1e-9, 1e-9}, {1, 0}},                   // below what counts
       })
    EXPECT_EQ(RoundToIntegerWeights(c.shares), c.whole);
  EXPECT_DEATH(RoundToIntegerWeights(std::vector<double>{}), "shares");
}

TEST(FractionalPacking, WholeTreesLeaveOutWhatRoundsToNothing) {
  const std::vector<Rank> roots = {Rank(3), Rank(5)};
  const std::vector<PartId> parts = {PartId(0), PartId(7)};
  FractionalPacking packing;
  packing.links = {LinkId(4), LinkId(9), LinkId(2)};
  const auto add = [&](int32_t root, double weight, int32_t first_link, int32_t num_links) {
    FractionalTree& tree = packing.trees.emplace_back();
    tree.root = root;
    tree.weight = weight;
    PackedArc& arc = tree.arcs.emplace_back();
    arc.from = roots[static_cast<size_t>(root)];
    arc.to = Rank(1);
    arc.depth = 1;
    arc.first_link = first_link;
    arc.num_links = num_links;
  };
  add(0, 0.75, 0, 1);
  add(1, 1 - 1e-9, 1, 2);
  add(0, 0.25, 1, 1);
  add(1, 1e-9, 0, 1);
  const PackedTrees whole = RoundToPackedTrees(packing, roots, parts);
  ASSERT_EQ(whole.trees.size(), 3u);
  struct Tree {
    Rank root;
    PartId part;
    int64_t weight;
    std::vector<LinkId> links;
  };
  const std::vector<Tree> expected = {{Rank(3), PartId(0), 3, {LinkId(4)}},
                                      {Rank(3), PartId(0), 1, {LinkId(9)}},
                                      {Rank(5), PartId(7), 4, {LinkId(9), LinkId(2)}}};
  for (size_t t = 0; t < expected.size(); ++t) {
    EXPECT_EQ(whole.trees[t].root, expected[t].root);
    EXPECT_EQ(whole.trees[t].part, expected[t].part);
    EXPECT_EQ(whole.trees[t].weight, expected[t].weight);
    const std::span<const LinkId> links = whole.paths[whole.trees[t].arcs[0].path];
    EXPECT_TRUE(std::ranges::equal(links, expected[t].links));
  }
}

}  // namespace
}  // namespace xccl
