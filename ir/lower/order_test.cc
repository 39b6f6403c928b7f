#include "ir/lower/order.h"

#include <gtest/gtest.h>

#include "ir/lower/testing/line.h"

namespace xccl::lowering {
namespace {

const Split kNoSplit = [](const MoveTimes*) -> StatusOr<Moves> { return BugError("not asked for"); };

TEST(Order, FollowsTheTimes) { EXPECT_EQ(OrderByTime(LineMoves().moves, 2, 2, LineTimes()), LineOrder()); }

TEST(Order, ByStepDoesOneStepAfterTheOther) {
  EXPECT_EQ(OrderByStep(LineMoves().moves, 2, 2),
            (Order{{Sent(0), Received(0), Sent(1), Received(1), Sent(2), Received(2), Sent(3), Received(3)},
                   {0, 2, 4, 6},
                   {1, 3, 5, 7},
                   1}));
}

// Link 1 is slow: both moves of link 0 would be under way at once.
TEST(Order, SendsWaitForAFreeSlot) {
  const MoveTimes slow{{0, 1, 10, 20}, {10, 11, 20, 30}};
  const std::optional<Order> two = OrderByTime(LineMoves().moves, 2, 2, slow);
  EXPECT_EQ(two->slots, 2);
  EXPECT_EQ(two->events, std::vector<int32_t>({Sent(0), Sent(1), Received(0), Sent(2), Received(1),
                                               Received(2), Sent(3), Received(3)}));
  const std::optional<Order> one = OrderByTime(LineMoves().moves, 2, 1, slow);
  EXPECT_EQ(one->slots, 1);
  EXPECT_EQ(one->events, std::vector<int32_t>({Sent(0), Received(0), Sent(1), Sent(2), Received(1),
                                               Received(2), Sent(3), Received(3)}));
}

// Chunks a = 0 and b = 1 both go from 0 to 1 and back. Rank 0 gets a back before it sends b, and b back
// before it sends a: connection 0->1 carries a first, by time, and its receive is to come behind b's.
std::vector<Move> Crossing() {
  std::vector<Move> moves(2);
  for (int32_t m = 0; m < 2; ++m) {
    moves[m] = {.chunk = ChunkId(0), .src = Rank(0), .dst = Rank(1), .step = m};
    moves[m].number = moves[m].bundle = moves[m].group = m;
  }
  moves[1].previous = 0;
  return moves;
}

TEST(Order, IsAbsentWhereFirstInFirstOutCrossesTheOrderOfWrites) {
  const std::vector<Move> moves = Crossing();
  EXPECT_FALSE(OrderByTime(moves, 1, 2, {{5, 0}, {15, 10}}).has_value());
  EXPECT_TRUE(OrderByTime(moves, 1, 2, {{0, 5}, {10, 15}}).has_value());
}

TEST(Order, FallsBackToSteps) {
  Moves moves{Crossing(), {}};
  int asked = 0;
  const Split split = [&](const MoveTimes* times) -> StatusOr<Moves> {
    EXPECT_EQ(times, nullptr);
    ++asked;
    return moves;
  };
  const Ordered ordered = OrderMoves(moves, {{5, 0}, {15, 10}}, 1, 2, 1000, split).value();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(ordered.moves, moves);
  EXPECT_EQ(ordered.order, OrderByStep(moves.moves, 1, 2));
}

TEST(Order, SplitsAgainWhereAdditionsMayChangePlaces) {
  Moves moves = LineMoves();
  const Ordered same = OrderMoves(moves, LineTimes(), 2, 2, 1000, kNoSplit).value();
  EXPECT_EQ(same.moves, moves);
  EXPECT_EQ(same.order, LineOrder());
  // Two additions at rank 1 in any order: the one that arrives first goes first.
  Moves sums{{{.dst = Rank(1)}, {.src = Rank(2), .dst = Rank(1), .path = 1, .number = 1, .bundle = 1}}, {}};
  sums.moves[0].group = sums.moves[1].group = 0;
  sums.moves[1].previous = 0;
  std::vector<int64_t> places;
  const Split split = [&](const MoveTimes* times) -> StatusOr<Moves> {
    places = times->arrival_ps;
    return sums;
  };
  const Ordered swapped = OrderMoves(sums, {{0, 0}, {20, 10}}, 2, 2, 1000, split).value();
  EXPECT_EQ(swapped.order.events, std::vector<int32_t>({Sent(0), Sent(1), Received(1), Received(0)}));
  EXPECT_EQ(places, std::vector<int64_t>({3, 2}));
}

// A multicast has one event for both branches at its sender; it takes a slot of each.
TEST(Order, ABundleIsSentAsOne) {
  std::vector<Move> moves(2);
  for (int32_t m = 0; m < 2; ++m) {
    moves[m] = {.dst = Rank(m + 1), .path = m, .number = m, .bundle_size = 2};
    moves[m].group = m;
  }
  moves[1].sends = false;
  EXPECT_EQ(OrderByTime(moves, 2, 1, {{0, 0}, {10, 10}}),
            (Order{{Sent(0), Received(0), Received(1)}, {0, 0}, {1, 2}, 1}));
}

}  // namespace
}  // namespace xccl::lowering
