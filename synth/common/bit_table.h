// A table of bits. For example, bit (r, c) says whether rank r has chunk c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace xccl {

// Each row takes whole words of 64 bits.
class BitTable {
 public:
  BitTable() = default;
  BitTable(int32_t rows, int32_t columns)
      : words_((columns + 63) / 64), bits_(static_cast<size_t>(rows) * static_cast<size_t>(words_), 0) {}
  int32_t words() const { return words_; }
  uint64_t* Row(int32_t r) { return bits_.data() + static_cast<size_t>(r) * static_cast<size_t>(words_); }
  const uint64_t* Row(int32_t r) const {
    return bits_.data() + static_cast<size_t>(r) * static_cast<size_t>(words_);
  }
  bool Get(int32_t r, int32_t c) const { return Row(r)[c >> 6] >> (c & 63) & 1; }
  void Set(int32_t r, int32_t c) { Row(r)[c >> 6] |= uint64_t{1} << (c & 63); }

 private:
  int32_t words_ = 0;
  std::vector<uint64_t> bits_;
};

}  // namespace xccl
