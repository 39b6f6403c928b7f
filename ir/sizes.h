// Bytes of a collective at a given size, by nccl-tests' rules (docs/ir.md, Sizes). The size is the larger
// of a rank's send and receive buffer; it is rounded down as the rules say.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/collective.h"

namespace xccl {

// Simulation and bounds count elements of this size if no type is given (float, nccl-tests' default).
inline constexpr int64_t kDefaultElementBytes = 4;

// Element counts of one collective at one size. All boundaries are whole elements, and chunks may be empty.
class CollectiveSizes {
 public:
  // Requires: size_bytes >= 0, element_bytes > 0. Cost: linear in parts + chunks, or in the chunks of one
  // part if all parts are alike.
  CollectiveSizes(const Collective& collective, int64_t size_bytes,
                  int64_t element_bytes = kDefaultElementBytes);
  // Takes the parts exactly as given, without nccl-tests' rounding. Requires: one count per part, none
  // negative.
  static CollectiveSizes OfParts(const Collective& collective, std::vector<int64_t> part_elements,
                                 int64_t element_bytes);

  int64_t element_bytes() const { return element_bytes_; }
  // The real size, after rounding down: nccl-tests' size column.
  int64_t size_bytes() const { return size_bytes_; }
  int64_t PartElements(PartId p) const { return part_elements_[alike_chunks_ > 0 ? 0 : p.index()]; }
  int64_t PartBytes(PartId p) const { return PartElements(p) * element_bytes_; }
  int64_t ChunkElements(ChunkId c) const {
    return chunk_elements_[static_cast<size_t>(alike_chunks_ > 0 ? c.value % alike_chunks_ : c.value)];
  }
  int64_t ChunkBytes(ChunkId c) const { return ChunkElements(c) * element_bytes_; }
  // Returns whether all parts are known to have equal numbers of elements, and equal numbers of chunks of
  // weight 1.
  bool HasAlikeParts() const { return alike_chunks_ > 0; }
  int64_t LargestChunkBytes() const;  // 0 without chunks. Linear

 private:
  CollectiveSizes() = default;
  void CutChunks(const Collective& collective);
  int64_t element_bytes_ = 0;
  int64_t size_bytes_ = 0;
  // The number of chunks of every part if all parts are alike, else 0. If they are alike, the lists below
  // have the entries of one part only.
  int32_t alike_chunks_ = 0;
  std::vector<int64_t> part_elements_, chunk_elements_;
};

// busbw = algbw × this (nccl-tests; the table in docs/ir.md).
double BusFactor(CollectiveKind kind, int32_t members);

}  // namespace xccl
