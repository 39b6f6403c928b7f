#include "runtime/rdma/ofi/signal.h"

#include <bit>

namespace xccl::ofi {
namespace {

constexpr uint64_t kCounterMask = (uint64_t{1} << kCounterBits) - 1;

// One less than a power of two.
uint64_t CellMask(int32_t cells) { return std::bit_ceil(static_cast<uint64_t>(cells)) - 1; }

}  // namespace

uint64_t LowBytes(uint64_t number, size_t bytes) {
  return bytes >= sizeof number ? number : number & ((uint64_t{1} << (8 * bytes)) - 1);
}

uint64_t MarkOf(int32_t cell, int32_t cells, size_t data_bytes, uint64_t random) {
  const uint64_t place = CellMask(cells) << kCounterBits;
  return (LowBytes(random, data_bytes) & ~place & ~kCounterMask) | static_cast<uint64_t>(cell)
                                                                       << kCounterBits;
}

uint64_t Encode(uint64_t mark, uint64_t counter) { return mark | (counter & kCounterMask); }

int32_t CellOf(uint64_t data, int32_t cells) {
  return static_cast<int32_t>((data >> kCounterBits) & CellMask(cells));
}

bool HasMark(uint64_t data, uint64_t mark) { return (data & ~kCounterMask) == mark; }

uint64_t Unwrap(uint64_t data, uint64_t known) {
  const uint64_t ahead = (data - known) & kCounterMask, behind = kCounterMask + 1 - ahead;
  return ahead <= kCounterMask / 2 || known < behind ? known + ahead : known - behind;
}

}  // namespace xccl::ofi
