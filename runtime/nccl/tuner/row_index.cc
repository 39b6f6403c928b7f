#include "runtime/nccl/tuner/row_index.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace xccl::nccl_tuner {
namespace {

// Whether `earlier` decides, or cannot be run, wherever `later` would decide.
bool Covers(const Row& earlier, const Row& later) {
  return earlier.algorithm == later.algorithm && earlier.protocol == later.protocol &&
         (!earlier.pipe_ops || earlier.pipe_ops == later.pipe_ops) &&
         (!earlier.registered || earlier.registered == later.registered) &&
         (earlier.chunk_bytes || !later.chunk_bytes);
}

}  // namespace

RowIndex::RowIndex(std::vector<Row> rows) : rows_(std::move(rows)) {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  for (const Row& row : rows_) {
    bounds_.push_back(row.min_bytes);
    if (row.max_bytes < kEnd) bounds_.push_back(row.max_bytes + 1);
  }
  if (rows_.empty()) return;
  bounds_.push_back(std::numeric_limits<int64_t>::min());
  std::sort(bounds_.begin(), bounds_.end());
  bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  leaves_ = std::bit_ceil(bounds_.size());
  std::vector<std::vector<int32_t>> nodes(2 * leaves_);
  for (size_t r = 0; r < rows_.size(); ++r) {
    const Row& row = rows_[r];
    const auto add = [&](size_t node) {
      const bool covered = std::ranges::any_of(
          nodes[node], [&](int32_t e) { return Covers(rows_[static_cast<size_t>(e)], row); });
      if (!covered) nodes[node].push_back(static_cast<int32_t>(r));
    };
    size_t low = LeafOf(row.min_bytes);
    size_t high = row.max_bytes < kEnd ? LeafOf(row.max_bytes + 1) : leaves_ + bounds_.size();
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) add(low++);
      if (high % 2 == 1) add(--high);
    }
  }
  first_.reserve(nodes.size() + 1);
  for (const std::vector<int32_t>& node : nodes) {
    first_.push_back(static_cast<int32_t>(listed_.size()));
    listed_.insert(listed_.end(), node.begin(), node.end());
  }
  first_.push_back(static_cast<int32_t>(listed_.size()));
}

size_t RowIndex::LeafOf(int64_t bytes) const {
  const auto after = std::upper_bound(bounds_.begin(), bounds_.end(), bytes);
  return leaves_ + static_cast<size_t>(after - bounds_.begin()) - 1;
}

}  // namespace xccl::nccl_tuner
