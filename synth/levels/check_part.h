// Checks one rank's part of a program (ir/lower/lower_ranks.h) against the program of all ranks, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "ir/lower/lower_ranks.h"
#include "ir/program.h"

namespace xccl {

inline Program WithoutInstructions(Program program) {
  for (RankProgram& rank : program.ranks) {
    rank.scratch.clear();
    std::erase_if(rank.threadblocks, [](const Threadblock& block) {
      return !block.send_peer && !block.recv_peer;  // copies
    });
    for (Threadblock& block : rank.threadblocks) block.instructions.clear();
  }
  program.dependencies.clear();
  return program;
}

// Checks that the part that is lowered for one rank has the rank's instructions and connections of `whole`.
inline void CheckPart(const RankLowering& lowering, const Program& whole, Rank rank) {
  const Rank only[] = {rank};
  const Program part = lowering.ProgramOf(only), outlined = lowering.ProgramOf(only, true);
  EXPECT_EQ(part.ranks[rank].scratch, whole.ranks[rank].scratch);
  for (const Connection& own : part.connections)
    EXPECT_EQ(
        own,
        whole.connections[static_cast<size_t>(FindConnection(whole, own.src, own.dst, own.channel).value())]);
  EXPECT_EQ(WithoutInstructions(outlined), WithoutInstructions(whole));
  const std::vector<Threadblock>& of_part = part.ranks[rank].threadblocks;
  const std::vector<Threadblock>& of_whole = whole.ranks[rank].threadblocks;
  ASSERT_EQ(of_part.size(), of_whole.size());
  for (size_t b = 0; b < of_part.size(); ++b) {
    ASSERT_EQ(of_part[b].instructions.size(), of_whole[b].instructions.size());
    for (size_t i = 0; i < of_part[b].instructions.size(); ++i) {
      Instruction in_whole = of_whole[b].instructions[i];
      for (int32_t d = 0; d < in_whole.dep_count; ++d)
        EXPECT_EQ(part.dependencies[static_cast<size_t>(of_part[b].instructions[i].dep_first + d)],
                  whole.dependencies[static_cast<size_t>(in_whole.dep_first + d)]);
      in_whole.dep_first = of_part[b].instructions[i].dep_first;
      EXPECT_EQ(of_part[b].instructions[i], in_whole);
    }
  }
}

}  // namespace xccl
