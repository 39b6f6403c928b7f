// The rows of one collective, found by size: what a call does between NCCL and its kernel takes no longer
// with a thousand rows than with ten.
//
// A segment tree over the sizes at which rows begin and end. Each row is kept at the few nodes that make up
// its range, without those that an earlier row of the node always decides before. A call looks at the nodes
// above its size: a logarithmic number of short lists.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/nccl/tuner/table.h"

namespace xccl::nccl_tuner {

class RowIndex {
 public:
  RowIndex() = default;
  // Rows are tried in their order.
  explicit RowIndex(std::vector<Row> rows);

  // The first row that applies to the call and suits, or nullptr. `suits` may depend on the row's choice, and
  // on whether it has a chunk size, alone. Allocates nothing.
  template <typename Suits>
  const Row* First(const Call& call, const Suits& suits) const {
    if (bounds_.empty()) return nullptr;
    int32_t best = static_cast<int32_t>(rows_.size());
    for (size_t node = LeafOf(call.bytes); node > 0; node /= 2)
      for (int32_t k = first_[node]; k < first_[node + 1] && listed_[static_cast<size_t>(k)] < best; ++k) {
        const Row& row = rows_[static_cast<size_t>(listed_[static_cast<size_t>(k)])];
        if (!Applies(row, call) || !suits(row)) continue;
        best = listed_[static_cast<size_t>(k)];
        break;
      }
    return best < static_cast<int32_t>(rows_.size()) ? &rows_[static_cast<size_t>(best)] : nullptr;
  }

 private:
  size_t LeafOf(int64_t bytes) const;

  std::vector<Row> rows_;
  std::vector<int64_t> bounds_;  // ascending: leaf i has the sizes from bounds_[i] to the next
  size_t leaves_ = 0;            // a power of two; node 1 is the root, leaf i is node leaves_ + i
  std::vector<int32_t> first_;   // by node: where its rows begin in listed_
  std::vector<int32_t> listed_;  // rows, ascending within a node
};

}  // namespace xccl::nccl_tuner
