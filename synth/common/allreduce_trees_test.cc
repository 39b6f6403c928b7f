#include "synth/common/allreduce_trees.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "ir/translated.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

constexpr int32_t kRanks = 4;

Collective Allreduce() {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllreduce;
  spec.ranks = AllRanks(kRanks);
  return Collective::Create(spec).value();
}

// Stars, whose centres are ranks 0, 1, ..., with these weights.
AllreduceTrees Stars(const Topology& mesh, const std::vector<int64_t>& weights) {
  AllreduceTrees made;
  for (size_t t = 0; t < weights.size(); ++t) {
    const Rank root(static_cast<int64_t>(t));
    AllreduceTree& tree = made.trees.emplace_back();
    tree.weight = weights[t];
    tree.root = root;
    for (const LinkId out : mesh.Out(mesh.NodeOf(root)))
      for (const LinkId in : mesh.In(mesh.NodeOf(root))) {
        if (mesh.link(in).from != mesh.link(out).to) continue;
        const Rank leaf = *mesh.RankOf(mesh.link(out).to);
        tree.up.push_back({.parent = root, .child = leaf, .path = made.paths.Intern(std::span(&in, 1))});
        tree.down.push_back({.parent = root, .child = leaf, .path = made.paths.Intern(std::span(&out, 1))});
      }
  }
  return made;
}

// The roots of the chunks, in their order.
std::vector<int32_t> RootsOf(const ChunkedSchedule& made) {
  std::vector<int32_t> roots(static_cast<size_t>(made.schedule.num_chunks));
  for (int64_t t = 0; t < made.schedule.size(); ++t)
    if (made.schedule.at(t).op == TransferOp::kReduce)
      roots[static_cast<size_t>(made.schedule.first[t].value)] = made.schedule.dst[t].value;
  return roots;
}

std::vector<int64_t> WeightsOf(const ChunkedSchedule& made) {
  std::vector<int64_t> weights;
  for (int32_t c = 0; c < made.schedule.num_chunks; ++c)
    weights.push_back(made.collective.Weight(ChunkId(int64_t{c})));
  return weights;
}

TEST(AllreduceTrees, EqualTreesHaveAChunkInEveryRound) {
  const Topology mesh = testing::MakeFullMesh(kRanks);
  const ChunkedSchedule made =
      MakeAllreduceSchedule(Stars(mesh, {5, 5}), std::vector<int64_t>{1, 2, 1}, Allreduce());
  EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, mesh)), OkStatus());
  EXPECT_EQ(RootsOf(made), (std::vector<int32_t>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(WeightsOf(made), (std::vector<int64_t>{1, 1, 2, 2, 1, 1}));
}

// Three quarters of the data are the first tree's.
TEST(AllreduceTrees, AHeavyTreeIsUsedMoreOftenAndChunksAreAlike) {
  const Topology mesh = testing::MakeFullMesh(kRanks);
  const ChunkedSchedule made =
      MakeAllreduceSchedule(Stars(mesh, {3, 1}), std::vector<int64_t>{1, 1, 1, 1}, Allreduce());
  EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, mesh)), OkStatus());
  EXPECT_EQ(RootsOf(made), (std::vector<int32_t>{0, 0, 1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(WeightsOf(made), std::vector<int64_t>(8, 1));
}

TEST(AllreduceTrees, SharesAreKept) {
  const Topology mesh = testing::MakeFullMesh(kRanks);
  const std::vector<int64_t> shares = {50, 3, 7, 40};
  const ChunkedSchedule made =
      MakeAllreduceSchedule(Stars(mesh, shares), std::vector<int64_t>{2, 3, 7, 7, 3, 2}, Allreduce());
  EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, mesh)), OkStatus());
  const std::vector<int32_t> roots = RootsOf(made);
  const std::vector<int64_t> weights = WeightsOf(made);
  const auto all = static_cast<double>(std::accumulate(weights.begin(), weights.end(), int64_t{0}));
  for (size_t root = 0; root < shares.size(); ++root) {
    int64_t share = 0;
    for (size_t c = 0; c < roots.size(); ++c)
      if (roots[c] == static_cast<int32_t>(root)) share += weights[c];
    EXPECT_NEAR(static_cast<double>(share) / all, static_cast<double>(shares[root]) / 100, 1e-6);
  }
}

TEST(AllreduceTrees, OneRoundUsesEachOnce) {
  const Topology mesh = testing::MakeFullMesh(kRanks);
  const ChunkedSchedule made =
      MakeAllreduceSchedule(Stars(mesh, {9, 1}), std::vector<int64_t>{1}, Allreduce());
  EXPECT_EQ(RootsOf(made), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(WeightsOf(made), (std::vector<int64_t>{9, 1}));
}

// Rank 0 stands for all ranks, and has two trees. Every rank gets their chunks of both rounds.
TEST(AllreduceTrees, TranslatesOfTreesHaveChunksAlike) {
  const Topology mesh = testing::MakeFullMesh(kRanks);
  const SymmetryGroup group = FindTranslations(mesh);
  ASSERT_EQ(group.order(), kRanks);
  AllreduceTrees trees = Stars(mesh, {3});
  trees.trees.push_back(trees.trees[0]);
  trees.trees[1].weight = 1;
  const ChunkedSchedule made = MakeAllreduceSchedule(trees, std::vector<int64_t>{1, 2}, Allreduce(), &group);
  EXPECT_EQ(made.schedule.num_chunks, 4 * kRanks);
  std::vector<int64_t> weights;
  for (int32_t r = 0; r < kRanks; ++r) weights.insert(weights.end(), {3, 1, 6, 2});
  EXPECT_EQ(WeightsOf(made), weights);
  const StatusOr<Schedule> plain = Expand(made.schedule, made.collective, mesh);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(ToStatus(VerifySchedule(*plain, made.collective, mesh)), OkStatus());
}

}  // namespace
}  // namespace xccl
