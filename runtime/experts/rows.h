// Rows in a caller's memory, in one or two arrays.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xccl::dispatch {

// The rows themselves, and what lies beside them, such as scales.
template <typename Byte>
struct RowArrays {
  Byte* rows = nullptr;
  int64_t row_bytes = 0;
  Byte* beside = nullptr;
  int64_t beside_bytes = 0;
  int64_t bytes() const { return row_bytes + beside_bytes; }  // of a row with what is beside it
};
using RowSource = RowArrays<const std::byte>;
using RowPlace = RowArrays<std::byte>;

}  // namespace xccl::dispatch
