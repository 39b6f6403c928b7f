// Which calls share memory: ranges of bytes that calls read or write, and the first two of them that cannot
// run side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace xccl {

struct MemoryUse {
  const std::byte* begin = nullptr;
  int64_t bytes = 0;  // zero or less: no memory
  bool writes = false;
  size_t by = 0;  // who uses it; uses of one owner are in order among each other
};

// Two uses by different owners that share bytes, at least one of which writes: their indices, the lower
// first. Time: that of a sort.
std::optional<std::pair<size_t, size_t>> FindConflict(std::span<const MemoryUse> uses);

}  // namespace xccl
