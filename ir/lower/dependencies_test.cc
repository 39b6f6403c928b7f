#include "ir/lower/dependencies.h"

#include <gtest/gtest.h>

#include "ir/lower/testing/line.h"

namespace xccl::lowering {
namespace {

Instruction Send(const Operand& src) { return Op(Opcode::kSend, 1, src, kNone); }
Instruction Receive(const Operand& dst) { return Op(Opcode::kRecv, 1, kNone, dst); }

struct Waits {
  std::vector<std::vector<int32_t>> counts;  // of rank 1, by threadblock
  std::vector<Dependency> dependencies;
  bool operator==(const Waits&) const = default;
};

// Rank 1 of three on a line: threadblock 0 receives from rank 0, 1 and 2 send to rank 2, all by link 1.
Waits AddTo(const std::vector<std::vector<Instruction>>& blocks, const std::vector<std::vector<int32_t>>& at,
            bool pace, const Collective& collective = LineCollective()) {
  Program program;
  program.ranks = IdVector<Rank, RankProgram>(3);
  program.connections = {{Rank(0), Rank(1), 0, testing::Links({0})},
                         {Rank(1), Rank(2), 0, testing::Links({1})},
                         {Rank(1), Rank(2), 1, testing::Links({1})}};
  std::vector<Threadblock>& made = program.ranks[Rank(1)].threadblocks;
  made = {Block(Rank(0), kNobody), Block(kNobody, Rank(2)), Block(kNobody, Rank(2), 1)};
  for (size_t b = 0; b < blocks.size(); ++b) made[b].instructions = blocks[b];
  Places places(3);
  places[Rank(1)] = at;
  AddDependencies(places, collective, pace, program);
  Waits waits;
  int32_t next = 0;
  for (const Threadblock& block : made) {
    waits.counts.emplace_back();
    for (const Instruction& instruction : block.instructions) {
      EXPECT_EQ(instruction.dep_first, next);
      next += instruction.dep_count;
      waits.counts.back().push_back(instruction.dep_count);
    }
  }
  waits.dependencies = program.dependencies;
  return waits;
}

TEST(Dependencies, NothingToWaitFor) {
  Program program = LineProgram(), expected = LineProgram();
  expected.in_place = true;
  AddDependencies(LinePlaces(), LineCollective(), false, program);
  EXPECT_EQ(program, expected);
}

TEST(Dependencies, AReadWaitsForTheWriteBeforeIt) {
  EXPECT_EQ(AddTo({{Receive(kOut)}, {Send(kOut)}, {}}, {{0}, {1}, {}}, false),
            (Waits{{{0}, {1}, {}}, {{0, 0}}}));
  // The places say which instruction comes first; the order of threadblocks does not.
  EXPECT_EQ(AddTo({{Receive(kOut)}, {Send(kOut)}, {}}, {{1}, {0}, {}}, false),
            (Waits{{{1}, {0}, {}}, {{1, 0}}}));
}

TEST(Dependencies, AWriteWaitsForAllReadsBeforeIt) {
  EXPECT_EQ(AddTo({{Receive(kOut)}, {Send(kOut)}, {Send(kOut)}}, {{2}, {0}, {1}}, false),
            (Waits{{{2}, {0}, {0}}, {{1, 0}, {2, 0}}}));
}

// The second send of a threadblock need not wait again for a receive that the first send has awaited. Where
// there are two receives, it waits for the later one.
TEST(Dependencies, ImpliedWaitsAreLeftOut) {
  EXPECT_EQ(AddTo({{Receive(kOut)}, {Send(kOut), Send(kOut)}, {}}, {{0}, {1, 2}, {}}, false),
            (Waits{{{0}, {1, 0}, {}}, {{0, 0}}}));
  Instruction both = Send(kOut);
  both.count = 2;
  EXPECT_EQ(AddTo({{Receive(kOut), Receive({BufferKind::kOutput, 1})}, {both}, {}}, {{0, 1}, {2}, {}}, false),
            (Waits{{{0, 0}, {1}, {}}, {{0, 1}}}));
}

// Input and output are one memory in place: a receive into the output comes after the input's sends.
TEST(Dependencies, InPlaceInputAndOutputAreTheSame) {
  const Collective same = testing::MakeCollective(CollectiveKind::kAllreduce, 3);
  EXPECT_EQ(AddTo({{Receive(kOut)}, {Send(kIn)}, {}}, {{1}, {0}, {}}, false, same),
            (Waits{{{1}, {0}, {}}, {{1, 0}}}));
  const Collective apart = testing::MakeCollective(CollectiveKind::kAlltoall, 3);
  EXPECT_EQ(AddTo({{Receive(kOut)}, {Send(kIn)}, {}}, {{1}, {0}, {}}, false, apart),
            (Waits{{{0}, {0}, {}}, {}}));
}

TEST(Dependencies, PacedSendsOnOneLinkTakeTurns) {
  const std::vector<std::vector<Instruction>> blocks = {{}, {Send(kIn), Send(kIn)}, {Send(kIn)}};
  const Collective same = testing::MakeCollective(CollectiveKind::kAllreduce, 3);
  EXPECT_EQ(AddTo(blocks, {{}, {0, 2}, {1}}, false, same), (Waits{{{}, {0, 0}, {0}}, {}}));
  EXPECT_EQ(AddTo(blocks, {{}, {0, 2}, {1}}, true, same), (Waits{{{}, {0, 1}, {1}}, {{2, 0}, {1, 0}}}));
}

}  // namespace
}  // namespace xccl::lowering
