#include "ir/lower/fold.h"

#include <gtest/gtest.h>

#include "ir/testing/graphs.h"

namespace xccl::lowering {
namespace {

using testing::Links;

// Rank 0 sends to rank 1, which sends on to rank 2; link 2 goes from rank 0 to rank 2.
Collective Waves(const std::vector<int64_t>& weights) {
  return testing::MakeCollective(CollectiveKind::kBroadcast, 3, Rank(0)).WithWeights({weights});
}

void AddWave(int32_t chunk, int32_t step, Schedule& schedule) {
  schedule.Add(ChunkId(chunk), 1, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, step);
  schedule.Add(ChunkId(chunk), 1, Rank(1), Rank(2), Links({1}), TransferOp::kCopy, step + 1);
}

TEST(Fold, NeighboursOnTheSamePathsBecomeOne) {
  Schedule schedule, expected;
  schedule.num_chunks = 4;
  for (int32_t c = 0; c < 3; ++c) AddWave(c, c, schedule);
  schedule.Add(ChunkId(3), 1, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 3);
  schedule.Add(ChunkId(3), 1, Rank(0), Rank(2), Links({2}), TransferOp::kCopy, 3);
  Normalize(schedule);
  // The joint chunk moves in the steps of the first; steps are dense again.
  expected.num_chunks = 2;
  AddWave(0, 0, expected);
  expected.Add(ChunkId(1), 1, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 2);
  expected.Add(ChunkId(1), 1, Rank(0), Rank(2), Links({2}), TransferOp::kCopy, 2);
  Normalize(expected);
  const std::optional<Folded> folded = FoldWaves(schedule, Waves({1, 2, 4, 1}));
  ASSERT_TRUE(folded.has_value());
  EXPECT_EQ(folded->schedule, expected);
  EXPECT_EQ(folded->collective, Waves({7, 1}));
}

TEST(Fold, PartsStayApart) {
  const Collective gather = testing::MakeCollective(CollectiveKind::kAllgather, 2).WithChunks(2);
  Schedule schedule, expected;
  schedule.num_chunks = 4;
  schedule.Add(ChunkId(0), 2, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 0);
  schedule.Add(ChunkId(2), 2, Rank(1), Rank(0), Links({1}), TransferOp::kCopy, 0);
  expected.num_chunks = 2;
  expected.Add(ChunkId(0), 1, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 0);
  expected.Add(ChunkId(1), 1, Rank(1), Rank(0), Links({1}), TransferOp::kCopy, 0);
  const std::optional<Folded> folded = FoldWaves(schedule, gather);
  ASSERT_TRUE(folded.has_value());
  EXPECT_EQ(folded->schedule, expected);
  EXPECT_EQ(folded->collective, gather.WithWeights({{2}, {2}}));
}

// The order of the paths counts, and so does the operation at their ends.
TEST(Fold, NothingWhereNeighboursDiffer) {
  Schedule schedule;
  schedule.num_chunks = 2;
  AddWave(0, 0, schedule);
  schedule.Add(ChunkId(1), 1, Rank(0), Rank(2), Links({2}), TransferOp::kCopy, 0);
  schedule.Add(ChunkId(1), 1, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 1);
  Normalize(schedule);
  EXPECT_FALSE(FoldWaves(schedule, Waves({1, 1})).has_value());
}

}  // namespace
}  // namespace xccl::lowering
