// Where every chunk lies at every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/collective.h"
#include "ir/lower/fuse.h"
#include "ir/lower/moves.h"
#include "ir/program.h"

namespace xccl::lowering {

// A rank's own contribution lies in its input, anything else in the output where that has the chunk, else in
// scratch. Scratch slots are in order of chunk, so that neighbours among the chunks are neighbours there.
class Buffers {
 public:
  Buffers(const Moves& moves, const Fusion& fusion, const Collective& collective, int32_t num_ranks);

  // Does the output have room for it?
  bool InOutput(Rank rank, ChunkId chunk) const { return SlotIn(output_[rank], chunk).has_value(); }
  // Requires: the precondition gives the chunk to the rank.
  Operand Input(Rank rank, ChunkId chunk) const;
  // Requires: in the output, or received and stored.
  Operand Held(Rank rank, ChunkId chunk) const;
  const std::vector<ChunkId>& Scratch(Rank rank) const { return scratch_[rank]; }

 private:
  struct Part {
    PartId part;
    int32_t first_slot;
  };
  std::optional<int32_t> SlotIn(const std::vector<Part>& parts, ChunkId chunk) const;
  std::vector<Part> Place(const std::vector<PartId>& parts) const;

  const Collective& collective_;
  IdVector<Rank, std::vector<Part>> input_, output_;
  IdVector<Rank, std::vector<ChunkId>> scratch_;  // sorted
};

// Does the move leave its value at the receiver? Not a sum that is only sent on by the instruction that
// makes it.
bool IsStored(const Moves& moves, const Fusion& fusion, int32_t move);

}  // namespace xccl::lowering
