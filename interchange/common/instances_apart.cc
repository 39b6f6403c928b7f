#include "interchange/common/instances_apart.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace xccl {
namespace {

Collective Cut(const Collective& collective, int32_t copies) {
  std::vector<int32_t> chunks;
  std::vector<int64_t> weights;
  for (int32_t p = 0; p < collective.num_parts(); ++p)
    chunks.push_back(collective.ChunksOf(PartId(p)) * copies);
  for (int32_t c = 0; c < collective.num_chunks(); ++c)
    weights.insert(weights.end(), static_cast<size_t>(copies), collective.Weight(ChunkId(c)));
  return collective.WithWeights(chunks, weights);
}

// One copy of a rank's threadblocks, whose dependencies go to the end of `program`.
void AddCopy(const Program& from, Rank r, int32_t copy, int32_t copies, Program& program) {
  const std::vector<Threadblock>& blocks = from.ranks[r].threadblocks;
  std::vector<Threadblock>& to = program.ranks[r].threadblocks;
  const auto first_block = static_cast<int32_t>(to.size());
  std::vector<std::vector<int32_t>> last(blocks.size());  // by threadblock and instruction
  for (size_t b = 0; b < blocks.size(); ++b) {
    int32_t next = 0;
    for (const Instruction& i : blocks[b].instructions) last[b].push_back((next += std::max(1, i.count)) - 1);
  }
  for (const Threadblock& block : blocks) {
    Threadblock& made = to.emplace_back(block);
    made.channel = block.channel * copies + copy;
    made.instructions.clear();
    for (const Instruction& i : block.instructions) {
      Instruction one = i;
      one.dep_first = static_cast<int32_t>(program.dependencies.size());
      for (const Dependency& on :
           std::span(from.dependencies)
               .subspan(static_cast<size_t>(i.dep_first), static_cast<size_t>(i.dep_count)))
        program.dependencies.push_back(
            {first_block + on.threadblock,
             last[static_cast<size_t>(on.threadblock)][static_cast<size_t>(on.index)]});
      one.count = std::min(1, i.count);
      for (int32_t k = 0; k < std::max(1, i.count); ++k) {
        if (ReadsSource(i.op)) one.src.slot = (i.src.slot + k) * copies + copy;
        if (WritesDestination(i.op)) one.dst.slot = (i.dst.slot + k) * copies + copy;
        made.instructions.push_back(one);
        one.dep_first = one.dep_count = 0;
      }
    }
  }
}

}  // namespace

LoweredProgram WithInstancesApart(const Program& program, const Collective& collective, int32_t copies) {
  LoweredProgram made{collective, program};
  made.program.instances = 1;
  if (copies == 1) return made;
  made.collective = Cut(collective, copies);
  made.program.dependencies.clear();
  made.program.connections.clear();
  for (const Connection& connection : program.connections)
    for (int32_t copy = 0; copy < copies; ++copy) {
      made.program.connections.push_back(connection);
      made.program.connections.back().channel = connection.channel * copies + copy;
    }
  for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
    RankProgram& rank = made.program.ranks[r];
    rank.scratch.clear();
    rank.threadblocks.clear();
    for (const ChunkId chunk : program.ranks[r].scratch)
      for (int32_t copy = 0; copy < copies; ++copy) rank.scratch.emplace_back(chunk.value * copies + copy);
    for (int32_t copy = 0; copy < copies; ++copy) AddCopy(program, r, copy, copies, made.program);
  }
  return made;
}

}  // namespace xccl
