#include "synth/common/packed_trees.h"

#include <gtest/gtest.h>

#include "ir/verify/verify_schedule.h"
#include "synth/common/reverse.h"
#include "synth/common/test_machines.h"

namespace xccl {
namespace {

Collective Of(CollectiveKind kind, int32_t ranks, std::optional<Rank> root) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(ranks);
  spec.root = root;
  if (kind == CollectiveKind::kAllgatherv || kind == CollectiveKind::kReduceScatterv)
    for (int32_t r = 0; r < ranks; ++r) spec.counts.push_back(r % 3);
  return Collective::Create(spec).value();
}

// Trees on a ring, one in each direction: weights 1 and 2 and depth ranks − 1, or no tree for 0 clockwise
// arcs.
PackedTrees RoundTheRing(const Topology& ring, const std::vector<Rank>& roots) {
  const int32_t n = ring.num_ranks();
  PackedTrees made;
  for (size_t p = 0; p < roots.size(); ++p) {
    for (int32_t way : {1, n - 1}) {
      PackedTree tree{
          .part = PartId(static_cast<int64_t>(p)), .root = roots[p], .weight = way == 1 ? 1 : 2, .arcs = {}};
      for (int32_t d = 1, at = roots[p].value; d < n; ++d) {
        const int32_t to = (at + way) % n;
        for (LinkId link : ring.Out(ring.NodeOf(Rank(at))))
          if (ring.RankOf(ring.link(link).to) == Rank(to)) {
            tree.arcs.push_back({Rank(at), Rank(to), made.paths.Intern(std::span(&link, 1)), d});
            break;
          }
        at = to;
      }
      made.trees.push_back(tree);
    }
  }
  return made;
}

TEST(PackedTrees, AreSchedulesThatVerify) {
  const Topology ring = testing::MakeRing(5), turned = ReverseTopology(ring);
  const std::vector<Rank> all = {Rank(0), Rank(1), Rank(2), Rank(3), Rank(4)};
  for (int32_t waves : {1, 2, 7}) {
    const TreeSteps steps{.waves = waves};
    const auto check = [&](const ChunkedSchedule& made, int32_t chunks, int32_t steps_a_wave) {
      EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, ring)), OkStatus());
      EXPECT_EQ(made.collective.num_chunks(), chunks * waves);
      EXPECT_EQ(made.schedule.num_steps(), steps_a_wave * waves);
      EXPECT_EQ(made.collective.Weight(ChunkId(0)), WaveWeights(waves)[0]);
      EXPECT_EQ(made.collective.Weight(ChunkId(int64_t{chunks} * waves - 1)), 2 * WaveWeights(waves)[0]);
    };
    // Trees are four deep; a sum has a step for each direction, too.
    for (CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kAllgatherv})
      check(CopyDown(RoundTheRing(ring, all), Of(kind, 5, std::nullopt), steps), 10, 4);
    for (CollectiveKind kind : {CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv})
      check(SumUp(RoundTheRing(turned, all), ring, Of(kind, 5, std::nullopt), steps), 10, 8);
    check(CopyDown(RoundTheRing(ring, {Rank(3)}), Of(CollectiveKind::kBroadcast, 5, Rank(3)), steps), 2, 4);
    check(SumUp(RoundTheRing(turned, {Rank(3)}), ring, Of(CollectiveKind::kReduce, 5, Rank(3)), steps), 2, 8);
  }
}

TEST(PackedTrees, TheLongestPathGoesFirst) {
  // A chain of three arcs and a leaf of its own at the root.
  const Topology machine = testing::MakeFullMesh(5);
  PackedTrees trees;
  const auto arc = [&](int32_t from, int32_t to, int32_t depth) {
    for (LinkId link : machine.Out(machine.NodeOf(Rank(from))))
      if (machine.RankOf(machine.link(link).to) == Rank(to))
        return TreeArc{Rank(from), Rank(to), trees.paths.Intern(std::span(&link, 1)), depth};
    return TreeArc{};
  };
  trees.trees.push_back({.part = PartId(0), .root = Rank(0), .weight = 1, .arcs = {}});
  trees.trees[0].arcs = {arc(0, 4, 1), arc(0, 1, 1), arc(1, 2, 2), arc(2, 3, 3)};
  EXPECT_EQ(trees.Depth(), 3);
  const Collective broadcast = Of(CollectiveKind::kBroadcast, 5, Rank(0));
  const Schedule made = CopyDown(trees, broadcast, {.waves = 1}).schedule;
  for (int64_t t = 0; t < made.size(); ++t)
    EXPECT_EQ(made.step[t], made.dst[t] == Rank(4) ? 2 : made.dst[t].value - 1);
}

TEST(PackedTrees, PartsWithoutTreesStayWhole) {
  const Topology one = testing::MakeRing(1);
  const ChunkedSchedule made = CopyDown(PackedTrees(), Of(CollectiveKind::kAllgather, 1, std::nullopt), {});
  EXPECT_EQ(made.collective.num_chunks(), 1);
  EXPECT_EQ(made.schedule.size(), 0);
  EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, one)), OkStatus());
}

}  // namespace
}  // namespace xccl
