#include "synth/forest/twins.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "synth/common/fractional_packing.h"
#include "synth/common/test_machines.h"
#include "tests/testing/machine_kinds.h"

namespace xccl::forest {
namespace {

std::vector<Rank> All(const Topology& topology) {
  std::vector<Rank> ranks;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) ranks.emplace_back(r);
  return ranks;
}

PackingProblem ProblemOf(const Topology& topology) {
  PackingProblem problem = PlainPacking(topology, All(topology));
  problem.roots = {Rank(0)};
  problem.demand = {1};
  return problem;
}

Twins TwinsOf(const Topology& topology) { return {topology, All(topology), Rank(0)}; }

// Every arc follows its links, every rank is entered once, from one that has the data.
void ExpectTree(const Topology& topology, const FractionalPacking& packing, const FractionalTree& tree,
                Rank root) {
  std::set<Rank> has = {root};
  for (const PackedArc& arc : tree.arcs) {
    NodeId at = topology.NodeOf(arc.from);
    for (const LinkId l : packing.Links(arc)) {
      ASSERT_EQ(topology.link(l).from, at);
      at = topology.link(l).to;
    }
    ASSERT_EQ(at, topology.NodeOf(arc.to));
    ASSERT_TRUE(has.contains(arc.from));
    ASSERT_TRUE(has.insert(arc.to).second);
  }
  EXPECT_EQ(static_cast<int32_t>(has.size()), topology.num_ranks());
}

TEST(Twins, AreRanksWithEqualLinksToTheSameSwitches) {
  EXPECT_TRUE(TwinsOf(testing::MakeRing(4)).IsTrivial());
  // The root, its links, the others, and their links in and out.
  EXPECT_EQ(TwinsOf(testing::MakeSwitch(5)).NumRows(), 6);
  // Each GPU has a NIC of its own.
  EXPECT_TRUE(TwinsOf(testing::MakeCluster(2, 3)).IsTrivial());
}

TEST(Twins, TreesInTurnLoadNoLinkMoreThanTheProgramSays) {
  int32_t tried = 0;
  for (const int32_t kind : {1, 3, 4, 5})
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Topology topology = testing::MakeMachineOfKind(kind, seed, 24);
      const Twins twins = TwinsOf(topology);
      if (twins.IsTrivial()) continue;
      ++tried;
      PackingProblem problem = ProblemOf(topology);
      twins.Take(problem);
      const FractionalPacking one = PackTrees(problem);
      const FractionalPacking all = twins.InTurn(one, 0);
      double carried = 0;
      std::vector<double> load(static_cast<size_t>(topology.num_links()), 0);
      for (const FractionalTree& tree : all.trees) {
        ExpectTree(topology, all, tree, Rank(0));
        carried += tree.weight;
        for (const PackedArc& arc : tree.arcs)
          for (const LinkId l : all.Links(arc)) load[l.index()] += tree.weight;
      }
      EXPECT_NEAR(carried, 1, 1e-6);
      // Trees of next to no weight were left out.
      for (int32_t l = 0; l < topology.num_links(); ++l)
        EXPECT_LE(load[static_cast<size_t>(l)] /
                      static_cast<double>(topology.link(LinkId(l)).bandwidth_bytes_per_s),
                  one.s_per_byte * 1.01)
            << topology.name() << " link " << l;
    }
  EXPECT_GT(tried, 6);
}

TEST(Twins, ShortPiecesAreJoined) {
  const Topology topology = testing::MakeSwitch(17);
  const Twins twins = TwinsOf(topology);
  PackingProblem problem = ProblemOf(topology);
  twins.Take(problem);
  const FractionalPacking one = PackTrees(problem);
  size_t pieces = SIZE_MAX;
  for (const double least : {0.0, 0.1, 0.3, 2.0}) {
    const FractionalPacking all = twins.InTurn(one, least);
    double carried = 0;
    for (const FractionalTree& tree : all.trees) carried += tree.weight;
    EXPECT_NEAR(carried, 1, 1e-6);
    EXPECT_LT(all.trees.size(), pieces) << least;
    pieces = all.trees.size();
  }
  EXPECT_EQ(pieces, one.trees.size());
}

}  // namespace
}  // namespace xccl::forest
