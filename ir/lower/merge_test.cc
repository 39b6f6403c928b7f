#include "ir/lower/merge.h"

#include <gtest/gtest.h>

#include "ir/lower/testing/line.h"

namespace xccl::lowering {
namespace {

Runs Merged(const Moves& moves, const Order& order, const Assignment& assignment, const Fusion& fusion,
            int32_t max_count = 16) {
  const Collective collective = LineCollective();
  return MergeRuns(moves, order, assignment, fusion, PlaceBuffers(moves, fusion, collective, 3), max_count);
}

// Every move is a run of its own.
const Runs kApart = {{kNoIndex, kNoIndex, kNoIndex, kNoIndex}, {1, 1, 1, 1}, {true, true, true, true}};

TEST(Merge, JoinsNeighbouringChunksAndTheirForwards) {
  EXPECT_EQ(Merged(LineMoves(), LineOrder(), LineAssignment(), LineFusion()), LineRuns());
}

TEST(Merge, JoinsAtMostSoMany) {
  EXPECT_EQ(Merged(LineMoves(), LineOrder(), LineAssignment(), LineFusion(), 1), kApart);
}

// Moves 0 and 1 take each other's chunk.
TEST(Merge, JoinsOnlyAscendingChunks) {
  Moves moves = LineMoves();
  for (Move& move : moves.moves) move.chunk = ChunkId(1 - move.chunk.value);
  EXPECT_EQ(Merged(moves, LineOrder(), LineAssignment(), LineFusion()), kApart);
}

TEST(Merge, JoinsOnlyMovesOfOneStep) {
  Moves moves = LineMoves();
  moves.moves[3].step = 2;
  // Moves 0 and 1 could join, but the moves that they are fused with cannot.
  EXPECT_EQ(Merged(moves, LineOrder(), LineAssignment(), LineFusion()), kApart);
}

// Rank 1 has a threadblock for each link. It sends move 2 before move 1 has come, so a run of moves 0 and 1
// would come too late, and a run of moves 2 and 3 would go too early.
TEST(Merge, CutsRunsThatWouldPassAnotherAccess) {
  Assignment apart = LineAssignment();
  apart.forwards_to = {kNoIndex, kNoIndex};
  apart.recv_block = {1, 0};
  apart.blocks[Rank(1)] = {Block(kNobody, Rank(2)), Block(Rank(0), kNobody)};
  EXPECT_EQ(Merged(LineMoves(), LineOrder(), apart, NoFusion(4)), kApart);
  // Step by step all of link 0 comes first.
  const Order by_step = OrderByStep(LineMoves().moves, 2, 2);
  EXPECT_EQ(Merged(LineMoves(), by_step, apart, NoFusion(4)), LineRuns());
}

// In one threadblock, sends and receives take turns.
TEST(Merge, JoinsOnlyNeighboursOfAThreadblock) {
  EXPECT_EQ(Merged(LineMoves(), LineOrder(), LineAssignment(), NoFusion(4)), kApart);
}

// A multicast to ranks 1 and 2, of which only rank 1 takes the two chunks next to each other.
TEST(Merge, ABundleJoinsAsAWholeOrNotAtAll) {
  Moves moves;
  for (int32_t m = 0; m < 4; ++m) {
    Move move{.chunk = ChunkId(m / 2), .src = Rank(0), .dst = Rank(m % 2 + 1), .path = m % 2};
    move.number = move.group = m;
    move.bundle = m / 2 * 2;
    move.bundle_size = 2;
    move.sends = m % 2 == 0;
    move.readers = 1;
    moves.moves.push_back(move);
  }
  Assignment assignment = LineAssignment();
  assignment.forwards_to = {kNoIndex, kNoIndex};
  assignment.blocks[Rank(1)] = {Block(Rank(0), kNobody)};
  const Order order = OrderByStep(moves.moves, 2, 2);
  EXPECT_EQ(Merged(moves, order, assignment, NoFusion(4)),
            (Runs{{kNoIndex, kNoIndex, 0, 1}, {2, 2, 0, 0}, {false, false, true, true}}));
  moves.moves[3].complete = true;
  EXPECT_EQ(Merged(moves, order, assignment, NoFusion(4)), kApart);
}

}  // namespace
}  // namespace xccl::lowering
