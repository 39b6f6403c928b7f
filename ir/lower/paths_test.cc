#include "ir/lower/paths.h"

#include <gtest/gtest.h>

#include "ir/lower/testing/line.h"
#include "ir/testing/trees.h"

namespace xccl::lowering {
namespace {

using testing::Links;

TEST(Paths, OneForEveryChain) { EXPECT_EQ(ListPaths(LineSchedule(), Line()), LinePaths()); }

// Link 2r leads from rank r to the switch, 2r + 1 back.
Schedule ThroughTheSwitch() {
  Schedule schedule;
  schedule.num_chunks = 3;
  schedule.Add(ChunkId(0), 2, Rank(0), Rank(1), Links({0, 3}), TransferOp::kCopy, 0);
  schedule.Add(ChunkId(1), 2, Rank(1), Rank(2), Links({2, 5, 1}), TransferOp::kCopy, 1);
  schedule.Add(ChunkId(1), 1, Rank(2), Rank(1), Links({4, 0, 3}), TransferOp::kReduce, 2);
  return schedule;
}

// The branches of a group are in order of rank, the links of its tree in the order of the path.
TEST(Paths, OneForEveryBranchOfATreeAndAGroupForTheTree) {
  const Paths expected = {.paths = {{Rank(0), Rank(1), Links({0, 3})},
                                    {Rank(1), Rank(0), Links({2, 1}), 0},
                                    {Rank(1), Rank(2), Links({2, 5}), 0},
                                    {Rank(0), Rank(1), Links({0, 3}), 1},
                                    {Rank(2), Rank(1), Links({4, 3}), 1}},
                          .groups = {{Group::Kind::kMulticast, Rank(1), 1, 2, Links({2, 5, 1})},
                                     {Group::Kind::kReduce, Rank(1), 3, 2, Links({4, 0, 3})}},
                          .first_of = {0, 1, 3, 5}};
  EXPECT_EQ(ListPaths(ThroughTheSwitch(), TreeSwitch(3)), expected);
}

TEST(Paths, GroupsAreOneUnitAtTheirRoot) {
  const Paths paths = ListPaths(ThroughTheSwitch(), TreeSwitch(3));
  const int32_t send[] = {0, 1, 1, 3, 4}, recv[] = {0, 1, 2, 3, 3};
  for (int32_t p = 0; p < paths.size(); ++p) {
    EXPECT_EQ(paths.SendUnit(p), send[p]) << p;
    EXPECT_EQ(paths.RecvUnit(p), recv[p]) << p;
  }
}

TEST(Paths, MovesOfABundleHaveTheTimesOfTheirChunk) {
  const Schedule schedule = ThroughTheSwitch();
  const MoveTimes times =
      TimesOfMoves(schedule, ListPaths(schedule, TreeSwitch(3)), {{0, 1, 2, 3, 4}, {10, 11, 12, 13, 14}});
  EXPECT_EQ(times.start_ps, std::vector<int64_t>({0, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(times.arrival_ps, std::vector<int64_t>({10, 11, 12, 12, 13, 13, 14, 14}));
}

}  // namespace
}  // namespace xccl::lowering
