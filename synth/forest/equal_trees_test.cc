#include "synth/forest/equal_trees.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "synth/common/test_machines.h"
#include "topologies/topology.h"

namespace xccl::forest {
namespace {

constexpr int64_t kWork = 1'000'000;

PackingProblem ProblemOf(const Topology& topology) {
  std::vector<Rank> members;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) members.emplace_back(r);
  PackingProblem problem = PlainPacking(topology, members);
  for (double& demand : problem.demand) demand = 1.0 / topology.num_ranks();
  return problem;
}

std::vector<PartId> PartsOf(const PackingProblem& problem) {
  std::vector<PartId> parts;
  for (const Rank root : problem.roots) parts.emplace_back(root.value);
  return parts;
}

// The busiest link's bytes, counted tree by tree, over its bandwidth.
double SPerByte(const PackingProblem& problem, const PackedTrees& trees, int64_t each) {
  std::vector<double> bytes(static_cast<size_t>(problem.topology->num_links()), 0.0);
  for (const PackedTree& tree : trees.trees)
    for (const TreeArc& arc : tree.arcs)
      for (const LinkId l : trees.paths[arc.path])
        bytes[l.index()] += problem.demand[tree.part.index()] / static_cast<double>(each);
  double most = 0;
  for (int32_t l = 0; l < problem.topology->num_links(); ++l)
    most = std::max(most, bytes[static_cast<size_t>(l)] /
                              static_cast<double>(problem.topology->link(LinkId(l)).bandwidth_bytes_per_s));
  return most;
}

TEST(EqualTrees, SpanTheMembersAndTellTheirRate) {
  for (const testing::Machine& machine : testing::Machines())
    for (const int64_t each : {1, 3}) {
      if (machine.topology.num_ranks() == 1) continue;
      SCOPED_TRACE(machine.name + ", " + std::to_string(each) + " trees");
      const PackingProblem problem = ProblemOf(machine.topology);
      const StatusOr<EqualTrees> made = PackEqualTrees(problem, PartsOf(problem), each, {}, kWork);
      ASSERT_TRUE(made.ok()) << made.status().message();
      ASSERT_EQ(made->trees.trees.size(), problem.roots.size() * static_cast<size_t>(each));
      for (const PackedTree& tree : made->trees.trees) {
        EXPECT_EQ(tree.weight, 1);
        std::vector<bool> has(static_cast<size_t>(machine.topology.num_ranks()), false);
        has[tree.root.index()] = true;
        for (const TreeArc& arc : tree.arcs) {
          EXPECT_TRUE(has[arc.from.index()] && !has[arc.to.index()]);
          has[arc.to.index()] = true;
        }
        EXPECT_EQ(tree.arcs.size() + 1, problem.members.size());
      }
      EXPECT_NEAR(made->s_per_byte / SPerByte(problem, made->trees, each), 1, 1e-9);
    }
}

// The rates are the best for so many trees.
TEST(EqualTrees, LoadAllLinksAlike) {
  struct Row {
    Topology topology;
    int64_t each;
    double most;  // bytes of 1 a root on the busiest link
  };
  const Row rows[] = {
      {testing::MakeRing(4), 1, 2},  // each root's tree goes 2 ways round, or 1 and 2
      {testing::MakeRing(4), 2, 1.5},
      {testing::MakeGrid({4, 4}, true), 4, 15.0 / 4},
      {testing::MakeGrid({3, 3}, false), 1, 4},  // a corner has 2 links for 8 trees
      {testing::MakeSwitch(4), 1, 3},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.topology.name());
    const PackingProblem problem = ProblemOf(row.topology);
    const StatusOr<EqualTrees> made = PackEqualTrees(problem, PartsOf(problem), row.each, {}, kWork);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const double bandwidth = static_cast<double>(row.topology.link(LinkId(0)).bandwidth_bytes_per_s);
    EXPECT_NEAR(made->s_per_byte * bandwidth * row.topology.num_ranks(), row.most, 1e-9);
  }
}

TEST(EqualTrees, AreTheSameEachTime) {
  const Topology torus = testing::MakeGrid({3, 4}, true);
  const PackingProblem problem = ProblemOf(torus);
  const auto trees = [&] { return PackEqualTrees(problem, PartsOf(problem), 3, {2, 5, 0.1}, kWork)->trees; };
  EXPECT_EQ(trees().trees, trees().trees);
}

TEST(EqualTrees, SayWhenTheWorkIsUsedUp) {
  const Topology ring = testing::MakeRing(4);
  const PackingProblem problem = ProblemOf(ring);
  const StatusOr<EqualTrees> made = PackEqualTrees(problem, PartsOf(problem), 1, {}, 4);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kLimit);
  EXPECT_EQ(made.status().message(), "forest: the limit of work was reached while trees were packed");
}

}  // namespace
}  // namespace xccl::forest
