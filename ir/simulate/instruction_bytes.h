// The bytes that the instructions of a program move.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/analysis/program_index.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "ir/sizes.h"

namespace xccl {

// The bytes that each instruction moves in a pass.
class InstructionBytes {
 public:
  // `all`: covers all instructions; otherwise only those that send. `whole`: every pass moves as much as the
  // first one, as if chunks had no end, so that a steady state can be observed.
  InstructionBytes(const Program& program, const Collective& collective, const CollectiveSizes& sizes,
                   const ProgramIndex& index, int32_t passes, bool all, bool whole)
      : sizes_(sizes), passes_(passes), whole_(whole), first_(static_cast<size_t>(index.size()) + 1, 0) {
    for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
      std::vector<ChunkId> slots[3];
      for (BufferKind buffer : {BufferKind::kInput, BufferKind::kOutput, BufferKind::kScratch})
        slots[static_cast<size_t>(buffer)] = SlotChunks(program, collective, r, buffer);
      const int32_t begin = index.BlockFirst(index.RankFirstBlock(r));
      const int32_t end = index.BlockFirst(index.RankFirstBlock(Rank(r.value + 1)));
      for (int32_t node = begin; node < end; ++node) {
        const Instruction& i = index.instruction(node);
        const Operand& operand = ReadsSource(i.op) ? i.src : i.dst;
        if (Sends(i.op) || all)
          for (int32_t k = 0; k < i.count; ++k)
            elements_.push_back(sizes.ChunkElements(
                slots[static_cast<size_t>(operand.buffer)][static_cast<size_t>(operand.slot + k)]));
        first_[static_cast<size_t>(node) + 1] = static_cast<int64_t>(elements_.size());
      }
    }
  }

  int64_t operator()(int32_t node, int32_t pass) const {
    int64_t elements = 0;
    for (int64_t e = first_[static_cast<size_t>(node)]; e < first_[static_cast<size_t>(node) + 1]; ++e) {
      const Slice slice =
          SliceOf(elements_[static_cast<size_t>(e)], sizes_.element_bytes(), passes_, whole_ ? 0 : pass);
      elements += slice.end - slice.begin;
    }
    return elements * sizes_.element_bytes();
  }

 private:
  const CollectiveSizes& sizes_;
  const int32_t passes_;
  const bool whole_;
  std::vector<int64_t> first_;     // by instruction: its first index in elements_
  std::vector<int64_t> elements_;  // sizes of the chunks that instructions move
};

}  // namespace xccl
