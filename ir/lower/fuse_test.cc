#include "ir/lower/fuse.h"

#include <gtest/gtest.h>

#include "ir/lower/testing/line.h"

namespace xccl::lowering {
namespace {

TEST(Fuse, JoinsReceivesWithTheirForwards) {
  EXPECT_EQ(FuseForwards(LineMoves().moves, LineOrder(), LineAssignment(), 2, true), LineFusion());
}

TEST(Fuse, JoinsNothingUnlessAskedFor) {
  EXPECT_EQ(FuseForwards(LineMoves().moves, LineOrder(), LineAssignment(), 2, false), NoFusion(4));
}

TEST(Fuse, JoinsNothingAcrossThreadblocks) {
  Assignment apart = LineAssignment();
  apart.forwards_to = {kNoIndex, kNoIndex};
  EXPECT_EQ(FuseForwards(LineMoves().moves, LineOrder(), apart, 2, true), NoFusion(4));
}

// Move 3 sent when move 1 is received would be under way beside move 2, which is received later.
TEST(Fuse, LeavesASendWhereItsSlotIsNotFree) {
  EXPECT_EQ(FuseForwards(LineMoves().moves, LineOrder(), LineAssignment(), 1, true),
            (Fusion{{2, kNoIndex, kNoIndex, kNoIndex}, {kNoIndex, kNoIndex, 0, kNoIndex}}));
}

// Link 1 sends move 3 before move 2, so move 2 may not be sent as early as move 0 is received.
TEST(Fuse, KeepsTheOrderOfAConnection) {
  const Order order{{Sent(0), Received(0), Sent(1), Received(1), Sent(3), Received(3), Sent(2), Received(2)},
                    {0, 2, 6, 4},
                    {1, 3, 7, 5},
                    1};
  EXPECT_EQ(FuseForwards(LineMoves().moves, order, LineAssignment(), 2, true),
            (Fusion{{kNoIndex, 3, kNoIndex, kNoIndex}, {kNoIndex, kNoIndex, kNoIndex, 1}}));
}

}  // namespace
}  // namespace xccl::lowering
