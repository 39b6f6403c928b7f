#include "ir/lower/moves.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/lower/testing/line.h"
#include "ir/testing/trees.h"

namespace xccl::lowering {
namespace {

using testing::Links;

TEST(Moves, NameTheirFeedsAndReaders) {
  const MoveTimes times = LineTimes();
  for (const MoveTimes* by : {static_cast<const MoveTimes*>(nullptr), &times})
    EXPECT_EQ(SplitByRank(LineSchedule(), LinePaths(), LineCollective(), 3, by).value(), LineMoves());
}

// Ranks 0 and 2 add to rank 1 in one step, over links 0 and 3 of a duplex line.
Schedule TwoAdditions() {
  Schedule schedule;
  schedule.num_chunks = 1;
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), Links({0}), TransferOp::kReduce, 0);
  schedule.Add(ChunkId(0), 1, Rank(2), Rank(1), Links({3}), TransferOp::kReduce, 0);
  return schedule;
}

Move Addition(int32_t number) {
  Move move{.src = Rank(number == 0 ? 0 : 2), .dst = Rank(1), .path = number};
  move.number = move.bundle = number;
  move.reduces = move.crowded = true;
  move.readers = 1;
  return move;
}

// The first move adds to the receiver's input, the second to the result, and completes the sum.
TEST(Moves, AddInOrderOfArrivalWhereTimesAreGiven) {
  const Topology topology = testing::MakeGraph("line", 3, 0, testing::Duplex({{0, 1}, {1, 2}}));
  const Collective reduce = testing::MakeCollective(CollectiveKind::kReduce, 3, Rank(1));
  const Schedule schedule = TwoAdditions();
  const MoveTimes times{{0, 0}, {20, 10}};
  for (const bool by_time : {false, true}) {
    const int32_t first = by_time ? 1 : 0, second = 1 - first;
    std::vector<Move> expected = {Addition(0), Addition(1)};
    expected[first].local_input = true;
    expected[first].group = first;
    expected[second].previous = first;
    expected[second].complete = true;
    expected[second].group = by_time ? first : second;  // by time the two may change places
    const Moves moves =
        SplitByRank(schedule, ListPaths(schedule, topology), reduce, 3, by_time ? &times : nullptr).value();
    EXPECT_EQ(moves, (Moves{expected, {}})) << by_time;
  }
}

// Two other ranks send chunk 0 to rank 0, one after the other, and rank 0 sends it on in between.
TEST(Moves, NameWhatOverwritesAValue) {
  const Topology topology = testing::MakeGraph("line", 3, 0, testing::Duplex({{0, 1}, {1, 2}}));
  const Collective reduce = testing::MakeCollective(CollectiveKind::kAllreduce, 3);
  Schedule schedule;
  schedule.num_chunks = 1;
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), Links({0}), TransferOp::kReduce, 0);
  schedule.Add(ChunkId(0), 1, Rank(1), Rank(2), Links({2}), TransferOp::kReduce, 1);
  schedule.Add(ChunkId(0), 1, Rank(2), Rank(1), Links({3}), TransferOp::kCopy, 2);
  schedule.Add(ChunkId(0), 1, Rank(1), Rank(0), Links({1}), TransferOp::kCopy, 3);
  const std::vector<Move> moves =
      SplitByRank(schedule, ListPaths(schedule, topology), reduce, 3, nullptr).value().moves;
  std::vector<int32_t> feed, previous, overwriter, readers;
  for (const Move& move : moves) {
    feed.push_back(move.feed);
    previous.push_back(move.previous);
    overwriter.push_back(move.overwriter);
    readers.push_back(move.readers);
  }
  EXPECT_EQ(feed, std::vector<int32_t>({kNoIndex, 0, 1, 2}));
  EXPECT_EQ(previous, std::vector<int32_t>({kNoIndex, kNoIndex, 0, kNoIndex}));
  EXPECT_EQ(overwriter, std::vector<int32_t>({3, 2, kNoIndex, kNoIndex}));
  EXPECT_EQ(readers, std::vector<int32_t>({1, 2, 2, 1}));
  EXPECT_TRUE(moves[1].complete && moves[1].local_input && !moves[2].reduces);
}

// Every rank adds up the sum by itself, so all keep the order of the columns for the same bits.
TEST(Moves, AddInOneOrderWhereSeveralRanksAddUpTheSum) {
  std::vector<testing::Edge> edges;
  Schedule schedule;
  schedule.num_chunks = 1;
  for (const auto& [src, dst] : {std::pair(0, 1), {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}}) {
    schedule.Add(ChunkId(0), 1, Rank(src), Rank(dst), Links({static_cast<int32_t>(edges.size())}),
                 TransferOp::kReduce, 0);
    edges.push_back({src, dst});
  }
  const Topology topology = testing::MakeGraph("mesh", 3, 0, edges);
  const Paths paths = ListPaths(schedule, topology);
  const MoveTimes times{{0, 0, 0, 0, 0, 0}, {6, 5, 4, 3, 2, 1}};
  for (CollectiveKind kind : {CollectiveKind::kAllreduce, CollectiveKind::kBarrier}) {
    const Collective sum = testing::MakeCollective(kind, 3);
    EXPECT_EQ(SplitByRank(schedule, paths, sum, 3, &times).value(),
              SplitByRank(schedule, paths, sum, 3, nullptr).value())
        << ToString(kind);
  }
}

// A tree has one move for each branch. The first move's send sends a whole multicast; the first move's
// receive receives a whole reduction.
TEST(Moves, TreesBecomeBundles) {
  Schedule schedule;
  schedule.num_chunks = 1;
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(2), Links({0, 2, 5}), TransferOp::kReduce, 0);
  schedule.Add(ChunkId(0), 1, Rank(2), Rank(1), Links({4, 3, 1}), TransferOp::kCopy, 1);
  const Topology topology = TreeSwitch(3);
  const Collective sum = testing::MakeCollective(CollectiveKind::kAllreduce, 3);
  std::vector<Move> expected;
  for (const auto& [src, dst] : {std::pair(0, 2), std::pair(1, 2), std::pair(2, 0), std::pair(2, 1)}) {
    Move move{.src = Rank(src), .dst = Rank(dst)};
    move.path = move.number = static_cast<int32_t>(expected.size());
    move.bundle = move.path / 2 * 2;
    move.bundle_size = 2;
    move.step = move.path / 2;
    expected.push_back(move);
  }
  expected[0].group = 0;
  expected[0].reduces = expected[1].reduces = true;
  expected[0].local_input = expected[0].complete = true;
  expected[0].readers = 2;
  expected[0].overwriter = 2;
  expected[1].receives = false;
  expected[1].overwriter = 3;
  for (const int32_t m : {2, 3}) {
    expected[m].feed = 0;
    expected[m].group = m;
    expected[m].readers = 1;
  }
  expected[3].sends = false;
  EXPECT_EQ(SplitByRank(schedule, ListPaths(schedule, topology), sum, 3, nullptr).value(),
            (Moves{expected, {}}));
  EXPECT_EQ(EndOfSent(expected, 0), 1);
  EXPECT_EQ(EndOfReceived(expected, 0), 2);
  EXPECT_EQ(EndOfSent(expected, 2), 4);
  EXPECT_EQ(EndOfReceived(expected, 2), 3);
}

TEST(Moves, RefuseTooMany) {
  Schedule schedule = LineSchedule();
  schedule.count[0] = std::numeric_limits<int32_t>::max() / 2;
  EXPECT_EQ(
      SplitByRank(schedule, LinePaths(), LineCollective(), 3, nullptr).status(),
      InvalidInput("schedule: moves 1073741825 chunks in all; a program holds at most 1073741823; hint: "
                   "fewer chunks with --chunks"));
}

}  // namespace
}  // namespace xccl::lowering
