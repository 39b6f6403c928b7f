#include "ir/lower/fan_ins.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/testing/graphs.h"
#include "ir/testing/trees.h"
#include "topologies/topology.h"

namespace xccl::lowering {
namespace {

using testing::Links;

// A link from every rank to every other. The links of a rank are neighbours, in order of their ends.
Topology Mesh() {
  std::vector<testing::Edge> edges;
  for (int32_t src = 0; src < 4; ++src)
    for (int32_t dst = 0; dst < 4; ++dst)
      if (src != dst) edges.push_back({src, dst});
  return testing::MakeGraph("mesh", 4, 0, edges);
}
std::vector<LinkId> LinkOf(int32_t src, int32_t dst) {
  return {LinkId(3 * src + (dst > src ? dst - 1 : dst))};
}

struct Sent {
  int32_t src, dst;
  TransferOp op = TransferOp::kReduce;
  int32_t step = 0;
};

Schedule ScheduleOf(const std::vector<Sent>& all, int32_t chunks = 1) {
  Schedule schedule;
  schedule.num_chunks = chunks;
  for (const Sent& sent : all)
    schedule.Add(ChunkId(0), chunks, Rank(sent.src), Rank(sent.dst), LinkOf(sent.src, sent.dst), sent.op,
                 sent.step);
  return schedule;
}

FanIns Find(const Schedule& schedule, CollectiveKind kind, bool everywhere) {
  const std::optional<Rank> root =
      kind == CollectiveKind::kReduce ? std::optional(Rank(0)) : std::optional<Rank>();
  const Collective collective = testing::MakeCollective(kind, 4, root).WithChunks(schedule.num_chunks);
  return FindFanIns(schedule, collective, Mesh(), everywhere);
}

// The path of a schedule's t-th transfer has number t, since all paths differ.
const std::vector<Sent> kToRankZero = {{1, 0}, {2, 0}, {3, 0}};

TEST(FanIns, OneAtEveryRankThatAddsUpTheSameSum) {
  const std::vector<Sent> all = {{0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 2}, {1, 3},
                                 {2, 0}, {2, 1}, {2, 3}, {3, 0}, {3, 1}, {3, 2}};
  const FanIns expected = {{{Rank(0), {PathId(3), PathId(6), PathId(9)}, 0},
                            {Rank(1), {PathId(0), PathId(7), PathId(10)}, 1},
                            {Rank(2), {PathId(1), PathId(4), PathId(11)}, 2},
                            {Rank(3), {PathId(2), PathId(5), PathId(8)}, 3}},
                           {1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2}};
  EXPECT_EQ(Find(ScheduleOf(all), CollectiveKind::kAllreduce, false), expected);
  EXPECT_EQ(Find(ScheduleOf(all), CollectiveKind::kAllreduce, true), expected);
}

TEST(FanIns, WhereOneRankAddsUpOnlyIfAskedFor) {
  const FanIns sum = {{{Rank(0), {PathId(0), PathId(1), PathId(2)}, 0}}, {0, 0, 0}};
  EXPECT_EQ(Find(ScheduleOf(kToRankZero), CollectiveKind::kReduce, false), FanIns());
  EXPECT_EQ(Find(ScheduleOf(kToRankZero), CollectiveKind::kReduce, true), sum);
  // An allreduce whose sum is copied to the rest.
  std::vector<Sent> all = kToRankZero;
  for (int32_t dst = 1; dst < 4; ++dst) all.push_back({0, dst, TransferOp::kCopy, 1});
  EXPECT_EQ(Find(ScheduleOf(all), CollectiveKind::kAllreduce, false), FanIns());
  EXPECT_EQ(Find(ScheduleOf(all), CollectiveKind::kAllreduce, true),
            (FanIns{sum.all, {0, 0, 0, kNoIndex, kNoIndex, kNoIndex}}));
}

TEST(FanIns, MembersComeInOrderOfTheirLowestContributor) {
  // Rank 3 brings the contribution of rank 1, so it comes before rank 2.
  const Schedule schedule =
      ScheduleOf({{1, 3}, {2, 0, TransferOp::kReduce, 1}, {3, 0, TransferOp::kReduce, 1}});
  EXPECT_EQ(Find(schedule, CollectiveKind::kReduce, true),
            (FanIns{{{Rank(0), {PathId(2), PathId(1)}, 0}}, {kNoIndex, 0, 0}}));
}

TEST(FanIns, ChunksOnTheSamePathsShareOne) {
  EXPECT_EQ(Find(ScheduleOf(kToRankZero, 2), CollectiveKind::kReduce, true),
            (FanIns{{{Rank(0), {PathId(0), PathId(1), PathId(2)}, 0}}, {0, 0, 0, 0, 0, 0}}));
}

TEST(FanIns, NoneWhereNothingMeets) {
  struct Case {
    const char* name;
    CollectiveKind kind;
    std::vector<Sent> sent;
  };
  const Case cases[] = {
      {"additions of two steps", CollectiveKind::kReduce, {{1, 0}, {2, 0, TransferOp::kReduce, 1}}},
      {"one addition", CollectiveKind::kReduce, {{1, 0}}},
      {"copies", CollectiveKind::kAllgather, {{0, 1, TransferOp::kCopy}, {1, 2, TransferOp::kCopy}}},
  };
  for (const Case& c : cases) EXPECT_EQ(Find(ScheduleOf(c.sent), c.kind, true), FanIns()) << c.name;
}

// Link 2r leads from rank r to the switch, 2r + 1 back. Ranks 1 and 2 are added in the switch.
TEST(FanIns, NoneWhereASwitchAddsToo) {
  Schedule schedule;
  schedule.num_chunks = 1;
  schedule.Add(ChunkId(0), 1, Rank(1), Rank(0), Links({2, 4, 1}), TransferOp::kReduce, 0);
  schedule.Add(ChunkId(0), 1, Rank(3), Rank(0), Links({6, 1}), TransferOp::kReduce, 0);
  const Collective collective = testing::MakeCollective(CollectiveKind::kReduce, 4, Rank(0));
  EXPECT_EQ(FindFanIns(schedule, collective, TreeSwitch(4), true), FanIns());
}

}  // namespace
}  // namespace xccl::lowering
