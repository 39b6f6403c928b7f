#include "synth/forest/twins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
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

// Trees of equal parts from every rank, or of one from rank 0.
PackingProblem ProblemOf(const Topology& topology, bool many_roots) {
  PackingProblem problem = PlainPacking(topology, All(topology));
  if (!many_roots) problem.roots = {Rank(0)};
  problem.demand.assign(problem.roots.size(), 1 / static_cast<double>(problem.roots.size()));
  return problem;
}

Twins TwinsOf(const Topology& topology, bool many_roots) {
  return {topology, All(topology), many_roots ? std::nullopt : std::optional(Rank(0))};
}

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
  EXPECT_TRUE(TwinsOf(testing::MakeRing(4), true).IsTrivial());
  const Topology machine = testing::MakeSwitch(5);
  // One class, its link in and its link out.
  EXPECT_EQ(TwinsOf(machine, true).NumRows(), 3);
  // The root and its links are apart.
  EXPECT_EQ(TwinsOf(machine, false).NumRows(), 6);
  // Each GPU has a NIC of its own.
  EXPECT_TRUE(TwinsOf(testing::MakeCluster(2, 3), true).IsTrivial());
}

TEST(Twins, TreesInTurnLoadNoLinkMoreThanTheProgramSays) {
  int32_t tried = 0;
  for (const int32_t kind : {1, 3, 4, 5})
    for (uint64_t seed = 1; seed <= 3; ++seed)
      for (const bool many_roots : {false, true}) {
        const Topology topology = testing::MakeMachineOfKind(kind, seed, 24);
        const Twins twins = TwinsOf(topology, many_roots);
        if (twins.IsTrivial()) continue;
        ++tried;
        PackingProblem problem = ProblemOf(topology, many_roots);
        twins.Take(problem, many_roots);
        const FractionalPacking one = PackTrees(problem);
        const FractionalPacking all = twins.InTurn(one, problem.roots, many_roots, 0);
        const PackingProblem whole = ProblemOf(topology, many_roots);
        std::vector<double> carried(whole.roots.size(), 0), load(static_cast<size_t>(topology.num_links()), 0);
        for (const FractionalTree& tree : all.trees) {
          const auto root = static_cast<size_t>(tree.root);
          ExpectTree(topology, all, tree, whole.roots[root]);
          carried[root] += tree.weight;
          for (const PackedArc& arc : tree.arcs)
            for (const LinkId l : all.Links(arc)) load[l.index()] += tree.weight * whole.demand[root];
        }
        for (const double share : carried) EXPECT_NEAR(share, 1, 1e-6);
        // Trees of next to no weight were left out.
        for (int32_t l = 0; l < topology.num_links(); ++l)
          EXPECT_LE(load[static_cast<size_t>(l)] /
                        static_cast<double>(topology.link(LinkId(l)).bandwidth_bytes_per_s),
                    one.s_per_byte * 1.01)
              << topology.name() << " link " << l;
      }
  EXPECT_GT(tried, 10);
}

TEST(Twins, ShortPiecesAreJoined) {
  const Topology topology = testing::MakeSwitch(17);
  const Twins twins = TwinsOf(topology, false);
  PackingProblem problem = ProblemOf(topology, false);
  twins.Take(problem, false);
  const FractionalPacking one = PackTrees(problem);
  for (const double least : {0.0, 0.1, 0.3, 2.0}) {
    const FractionalPacking all = twins.InTurn(one, problem.roots, false, least);
    double carried = 0;
    for (const FractionalTree& tree : all.trees) {
      if (one.trees.size() == 1 && all.trees.size() > 1) EXPECT_GE(tree.weight, least);
      carried += tree.weight;
    }
    EXPECT_NEAR(carried, 1, 1e-6);
    if (least > 1) EXPECT_EQ(all.trees.size(), one.trees.size());
  }
}

}  // namespace
}  // namespace xccl::forest
