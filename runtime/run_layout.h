// What runs that check themselves share, whatever they run on: which ranks take part, and where a rank's
// input and output lie in one allocation, with guard bytes around them; in place they overlap as the
// collective says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "ir/sizes.h"

namespace xccl {

inline constexpr std::byte kRunPoison{0xA5};  // of an output
inline constexpr std::byte kRunGuard{0x5A};   // around buffers
inline constexpr int64_t kRunGuardBytes = 256;

// Byte offsets in an allocation of `bytes`; everything outside of input and output is guard.
struct RunLayout {
  int64_t input_at = 0, input_bytes = 0;
  int64_t output_at = 0, output_bytes = 0;
  int64_t bytes = 0;
  bool overlaps = false;  // in place, where this rank has such a form
};
RunLayout RunLayoutOf(const Collective& collective, const CollectiveSizes& sizes, Rank rank, bool in_place);

// Guard everywhere, poison in the output. Requires: memory.size() == layout.bytes.
void PoisonRun(const RunLayout& layout, std::span<std::byte> memory);
// Bytes outside the buffers that are no longer guard.
int64_t OverwrittenGuards(const RunLayout& layout, std::span<const std::byte> memory);

// Ranks that hold data or forward it.
std::vector<Rank> ActiveRanks(const Program& program, const Collective& collective);
// Has the program, and has the collective, an in-place form?
bool HasInPlace(const Program& program, const Collective& collective);
// nccl-tests' count column.
int64_t RunCountOf(const Collective& collective, const CollectiveSizes& sizes);

}  // namespace xccl
