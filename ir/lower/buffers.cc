#include "ir/lower/buffers.h"

#include <algorithm>

namespace xccl::lowering {

bool IsStored(const Moves& moves, const Fusion& fusion, int32_t m) {
  const Move& move = moves.moves[m];
  return !(move.reduces && fusion.send_of[m] != kNoIndex && move.readers == 1);
}

Buffers PlaceBuffers(const Moves& moves, const Fusion& fusion, const Collective& collective,
                     int32_t num_ranks, std::span<const Rank> ranks) {
  const IdVector<Rank, std::vector<ChunkId>> none(static_cast<size_t>(num_ranks));
  const Buffers without_scratch(collective, none, ranks);
  IdVector<Rank, std::vector<ChunkId>> scratch = none;
  for (size_t m = 0; m < moves.moves.size(); ++m) {
    const Move& move = moves.moves[m];
    if (move.receives && IsStored(moves, fusion, static_cast<int32_t>(m)) &&
        !without_scratch.InOutput(move.dst, move.chunk))
      scratch[move.dst].push_back(move.chunk);
  }
  for (std::vector<ChunkId>& chunks : scratch) {
    std::sort(chunks.begin(), chunks.end());
    chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  }
  return Buffers(collective, std::move(scratch), ranks);
}

Buffers::Buffers(const Collective& collective, IdVector<Rank, std::vector<ChunkId>> scratch,
                 std::span<const Rank> ranks)
    : collective_(&collective),
      input_(static_cast<size_t>(scratch.size())),
      output_(static_cast<size_t>(scratch.size())),
      scratch_(std::move(scratch)) {
  for (Rank r : ranks.empty() ? std::span<const Rank>(collective.ranks()) : ranks) {
    input_[r] = Place(collective.InputParts(r));
    output_[r] = Place(collective.OutputParts(r));
  }
}

std::vector<Buffers::Part> Buffers::Place(const std::vector<PartId>& parts) const {
  std::vector<Part> placed;
  placed.reserve(parts.size());
  int32_t slot = 0;
  for (PartId part : parts) {
    placed.push_back({part, slot});
    slot += collective_->ChunksOf(part);
  }
  return placed;
}

std::optional<int32_t> Buffers::SlotIn(const std::vector<Part>& parts, ChunkId chunk) const {
  const PartId part = collective_->PartOf(chunk);
  const auto it = std::lower_bound(parts.begin(), parts.end(), part,
                                   [](const Part& p, PartId wanted) { return p.part < wanted; });
  if (it == parts.end() || it->part != part) return std::nullopt;
  return it->first_slot + chunk.value - collective_->FirstChunk(part).value;
}

Operand Buffers::Input(Rank rank, ChunkId chunk) const {
  const std::optional<int32_t> slot = SlotIn(input_[rank], chunk);
  XCCL_CHECK(slot.has_value());
  return {BufferKind::kInput, *slot};
}

Operand Buffers::Held(Rank rank, ChunkId chunk) const {
  if (const std::optional<int32_t> slot = SlotIn(output_[rank], chunk)) return {BufferKind::kOutput, *slot};
  const std::vector<ChunkId>& chunks = scratch_[rank];
  const auto it = std::lower_bound(chunks.begin(), chunks.end(), chunk);
  XCCL_CHECK(it != chunks.end() && *it == chunk);
  return {BufferKind::kScratch, static_cast<int32_t>(it - chunks.begin())};
}

}  // namespace xccl::lowering
