// Pass "buffers": gives every value a place in the memory of its rank.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/lower/fuse.h"
#include "ir/lower/moves.h"
#include "ir/program.h"

namespace xccl::lowering {

// A rank's own contribution lies in its input. Any other value lies in the output if the output has a slot
// for the chunk, else in scratch. Scratch slots are in order of chunk, so neighbouring chunks have
// neighbouring slots.
class Buffers {
 public:
  // `scratch`: by rank, the chunks that need a slot in scratch, ascending. `ranks`: the members whose buffers
  // are needed; if empty, all members. `collective` must outlive the object.
  Buffers(const Collective& collective, IdVector<Rank, std::vector<ChunkId>> scratch,
          std::span<const Rank> ranks = {});

  // Returns whether the rank's output has a slot for the chunk.
  bool InOutput(Rank rank, ChunkId chunk) const { return SlotIn(output_[rank], chunk).has_value(); }
  // Returns the chunk's slot in the rank's input. Requires that the precondition gives the chunk to the rank.
  Operand Input(Rank rank, ChunkId chunk) const;
  // Returns the chunk's slot in the rank's output or scratch. Requires that one of the two has a slot for it.
  Operand Held(Rank rank, ChunkId chunk) const;
  // Returns the chunks that have slots in the rank's scratch, ascending.
  const std::vector<ChunkId>& Scratch(Rank rank) const { return scratch_[rank]; }

 private:
  struct Part {
    PartId part;
    int32_t first_slot;
  };
  std::optional<int32_t> SlotIn(const std::vector<Part>& parts, ChunkId chunk) const;
  std::vector<Part> Place(const std::vector<PartId>& parts) const;

  const Collective* collective_;
  IdVector<Rank, std::vector<Part>> input_, output_;
  IdVector<Rank, std::vector<ChunkId>> scratch_;
};

// Returns whether the receiver stores the value of the move. A sum is not stored if its only reader is the
// send that is fused with its receive.
bool IsStored(const Moves& moves, const Fusion& fusion, int32_t move);

// Returns buffers with a slot for every stored value: in the output if the output has the chunk, else in
// scratch. Scratch has no other slots. `ranks` is as in Buffers; values of other ranks are left out.
Buffers PlaceBuffers(const Moves& moves, const Fusion& fusion, const Collective& collective,
                     int32_t num_ranks, std::span<const Rank> ranks = {});

}  // namespace xccl::lowering
