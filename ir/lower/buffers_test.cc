#include "ir/lower/buffers.h"

#include <gtest/gtest.h>

#include "ir/lower/testing/line.h"

namespace xccl::lowering {
namespace {

constexpr auto kInput = BufferKind::kInput, kOutput = BufferKind::kOutput, kScratch = BufferKind::kScratch;

TEST(Buffers, ValuesLieInTheOutputWhereItHasTheirChunk) {
  const Collective collective = LineCollective();
  const Buffers buffers = PlaceBuffers(LineMoves(), LineFusion(), collective, 3);
  EXPECT_EQ(buffers.Input(Rank(0), ChunkId(1)), (Operand{kInput, 1}));
  for (const Rank r : collective.ranks()) {
    EXPECT_TRUE(buffers.Scratch(r).empty());
    EXPECT_EQ(buffers.Held(r, ChunkId(1)), (Operand{kOutput, 1}));
  }
}

// Both chunks of rank 2 pass rank 1 on their way to rank 0; the parts of ranks 0 to 2 have 2 chunks each.
Moves Passing(bool reduces) {
  Moves moves;
  for (const int32_t chunk : {5, 4}) {
    Move move{.chunk = ChunkId(chunk), .src = Rank(2), .dst = Rank(1), .readers = 1, .reduces = reduces};
    moves.moves.push_back(move);
  }
  return moves;
}

TEST(Buffers, OtherValuesLieInScratchInOrderOfChunk) {
  const Collective gather = testing::MakeCollective(CollectiveKind::kGather, 3, Rank(0)).WithChunks(2);
  const Buffers buffers = PlaceBuffers(Passing(false), NoFusion(2), gather, 3);
  EXPECT_EQ(buffers.Scratch(Rank(1)), std::vector<ChunkId>({ChunkId(4), ChunkId(5)}));
  EXPECT_EQ(buffers.Held(Rank(1), ChunkId(5)), (Operand{kScratch, 1}));
  EXPECT_EQ(buffers.Input(Rank(1), ChunkId(3)), (Operand{kInput, 1}));
  EXPECT_FALSE(buffers.InOutput(Rank(1), ChunkId(4)));
  EXPECT_TRUE(buffers.InOutput(Rank(0), ChunkId(4)));
  EXPECT_EQ(buffers.Held(Rank(0), ChunkId(4)), (Operand{kOutput, 4}));
}

// A sum is not stored where its only reader is the send that is fused with its receive. A copy is.
TEST(Buffers, SumsThatAreOnlySentOnAreNotStored) {
  const Collective reduce = testing::MakeCollective(CollectiveKind::kReduce, 3, Rank(0)).WithChunks(6);
  Moves moves = Passing(true);
  const Fusion fused{{7, 8}, {kNoIndex, kNoIndex}};
  EXPECT_TRUE(PlaceBuffers(moves, fused, reduce, 3).Scratch(Rank(1)).empty());
  moves.moves[1].readers = 2;
  EXPECT_EQ(PlaceBuffers(moves, fused, reduce, 3).Scratch(Rank(1)), std::vector<ChunkId>({ChunkId(4)}));
  EXPECT_EQ(PlaceBuffers(moves, NoFusion(2), reduce, 3).Scratch(Rank(1)).size(), 2u);
  EXPECT_EQ(PlaceBuffers(Passing(false), fused, reduce, 3).Scratch(Rank(1)).size(), 2u);
}

}  // namespace
}  // namespace xccl::lowering
