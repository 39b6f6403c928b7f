#include "ir/lower/instructions.h"

#include <gtest/gtest.h>

#include "ir/lower/testing/line.h"

namespace xccl::lowering {
namespace {

using testing::Links;

TEST(Instructions, ARunIsOneInstructionAndLocalCopiesAreAThreadblock) {
  const Collective collective = LineCollective();
  const Moves moves = LineMoves();
  Program program;
  const Places places =
      WriteInstructions(moves, LineOrder(), LineAssignment(), LineFusion(), LineRuns(),
                        PlaceBuffers(moves, LineFusion(), collective, 3), LinePaths(), false, program);
  EXPECT_EQ(program, LineProgram());
  EXPECT_EQ(places, LinePlaces());
}

// Rank 1 has three threadblocks, so that rank 0 may have two for its copies.
TEST(Instructions, CopiesGetTheThreadblocksThatARankHasLeft) {
  const Moves moves = LineMoves();
  Assignment assignment = LineAssignment();
  assignment.blocks[Rank(1)].resize(3);
  Program program;
  const Places places =
      WriteInstructions(moves, LineOrder(), assignment, LineFusion(), LineRuns(),
                        PlaceBuffers(moves, LineFusion(), LineCollective(), 3), LinePaths(), false, program);
  const std::vector<Threadblock>& blocks = program.ranks[Rank(0)].threadblocks;
  ASSERT_EQ(blocks.size(), 3);
  EXPECT_EQ(blocks[1].instructions, std::vector<Instruction>({Op(Opcode::kCopy, 1, kIn, kOut)}));
  EXPECT_EQ(
      blocks[2].instructions,
      std::vector<Instruction>({Op(Opcode::kCopy, 1, {BufferKind::kInput, 1}, {BufferKind::kOutput, 1})}));
  EXPECT_EQ(places[Rank(0)], std::vector<std::vector<int32_t>>({{0}, {8}, {8}}));
}

TEST(Instructions, WithoutFusionAndMergingEveryMoveIsTwo) {
  const Collective collective = LineCollective();
  const Moves moves = LineMoves();
  const Runs apart{{kNoIndex, kNoIndex, kNoIndex, kNoIndex}, {1, 1, 1, 1}, {true, true, true, true}};
  Program program;
  const Places places =
      WriteInstructions(moves, LineOrder(), LineAssignment(), NoFusion(4), apart,
                        PlaceBuffers(moves, NoFusion(4), collective, 3), LinePaths(), false, program);
  const Operand second{BufferKind::kOutput, 1};
  EXPECT_EQ(
      program.ranks[Rank(1)].threadblocks[0].instructions,
      std::vector<Instruction>({Op(Opcode::kRecv, 1, kNone, kOut), Op(Opcode::kSend, 1, kOut, kNone),
                                Op(Opcode::kRecv, 1, kNone, second), Op(Opcode::kSend, 1, second, kNone)}));
  EXPECT_EQ(places[Rank(1)], std::vector<std::vector<int32_t>>({{1, 3, 4, 6}}));
}

// A reduction in switches at rank 2 takes rank 0's and rank 1's input, adds its own, and is multicast as the
// complete sum.
TEST(Instructions, SumsSayWhatIsFirstAndFinal) {
  const Paths paths{.paths = {{Rank(0), Rank(2), Links({0, 5}), 0},
                              {Rank(1), Rank(2), Links({2, 5}), 0},
                              {Rank(2), Rank(0), Links({4, 1}), 1},
                              {Rank(2), Rank(1), Links({4, 3}), 1}},
                    .groups = {{Group::Kind::kReduce, Rank(2), 0, 2, Links({0, 2, 5})},
                               {Group::Kind::kMulticast, Rank(2), 2, 2, Links({4, 3, 1})}},
                    .first_of = {0, 2, 4}};
  Moves moves;
  for (int32_t m = 0; m < 4; ++m) {
    Move move{.src = paths.paths[m].src, .dst = paths.paths[m].dst, .path = m, .step = m / 2, .number = m};
    move.bundle = m / 2 * 2;
    move.bundle_size = 2;
    move.group = m;
    move.readers = 1;
    moves.moves.push_back(move);
  }
  moves.moves[0].reduces = moves.moves[0].local_input = moves.moves[0].complete = true;
  moves.moves[0].readers = 2;
  moves.moves[1].receives = moves.moves[3].sends = false;
  moves.moves[2].feed = moves.moves[3].feed = 0;
  const Order order{
      {Sent(0), Sent(1), Received(0), Sent(2), Received(2), Received(3)}, {0, 1, 3, 3}, {2, 2, 4, 5}, 1};
  const Fusion fusion{{2, kNoIndex, kNoIndex, kNoIndex}, {kNoIndex, kNoIndex, 0, kNoIndex}};
  const Runs apart{{kNoIndex, kNoIndex, kNoIndex, kNoIndex}, {1, 1, 1, 1}, {true, true, true, true}};
  const Collective sum = testing::MakeCollective(CollectiveKind::kAllreduce, 3);
  Program program;
  WriteInstructions(moves, order, AssignThreadblocks(moves.moves, paths, 3, true), fusion, apart,
                    PlaceBuffers(moves, fusion, sum, 3), paths, true, program);
  // Groups are sorted by kind: the multicast comes first.
  EXPECT_EQ(program.groups,
            std::vector<Group>({{Group::Kind::kMulticast, Rank(2), {Rank(0), Rank(1)}, 0, Links({4, 3, 1})},
                                {Group::Kind::kReduce, Rank(2), {Rank(0), Rank(1)}, 0, Links({0, 2, 5})}}));
  Instruction all = Op(Opcode::kRecvReduceCopySend, 1, kIn, kOut);
  all.first = all.final = true;
  Threadblock root = Block(kNobody, kNobody, 0, {all});
  root.send_group = 0;
  root.recv_group = 1;
  EXPECT_EQ(program.ranks[Rank(2)].threadblocks, std::vector<Threadblock>({root}));
  Instruction send = Op(Opcode::kSend, 1, kIn, kNone);
  send.first = true;
  for (const Rank member : {Rank(0), Rank(1)}) {
    std::vector<Instruction> made;
    for (const Threadblock& block : program.ranks[member].threadblocks)
      made.insert(made.end(), block.instructions.begin(), block.instructions.end());
    EXPECT_EQ(made, std::vector<Instruction>({send, Op(Opcode::kRecv, 1, kNone, kOut)}));
  }
}

}  // namespace
}  // namespace xccl::lowering
