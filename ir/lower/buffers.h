// Pass "buffers": where every chunk lies at every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/lower/fuse.h"
#include "ir/lower/moves.h"
#include "ir/program.h"

namespace xccl::lowering {

// A rank's own contribution lies in its input. Any other value lies in the output where the output has the
// chunk, else in scratch. Scratch slots are in order of chunk, so neighbouring chunks are neighbours there.
class Buffers {
 public:
  // `scratch`: of every rank the chunks that need a slot there, ascending. `collective` must outlive this.
  Buffers(const Collective& collective, IdVector<Rank, std::vector<ChunkId>> scratch);

  // Does the output have room for it?
  bool InOutput(Rank rank, ChunkId chunk) const { return SlotIn(output_[rank], chunk).has_value(); }
  // Requires: the precondition gives the chunk to the rank.
  Operand Input(Rank rank, ChunkId chunk) const;
  // Requires: the chunk is in the output or in scratch.
  Operand Held(Rank rank, ChunkId chunk) const;
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

// Does the move leave its value at the receiver? A sum does not where its only reader is the send that is
// fused with its receive.
bool IsStored(const Moves& moves, const Fusion& fusion, int32_t move);

// Guarantees a slot for every value that is stored and not in the output, and no other scratch.
Buffers PlaceBuffers(const Moves& moves, const Fusion& fusion, const Collective& collective,
                     int32_t num_ranks);

}  // namespace xccl::lowering
