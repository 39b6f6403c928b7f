// Lists the transfers of every chunk in one array, chunk after chunk. First a difference array counts the
// transfers of each chunk; then a second pass over the transfers fills the lists. The chunks are handled in
// blocks, which bounds the memory for schedules with very many transfers of many chunks.
#include "ir/analysis/chunk_index.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace xccl {
namespace {

// The most indices in the lists of one block, unless a single chunk has more: 256 MiB.
constexpr int64_t kBlockEntries = int64_t{64} << 20;

void Fill(const Schedule& schedule, int32_t begin, int32_t end, std::vector<int64_t>& next,
          std::vector<int32_t>& rows) {
  const int64_t n = schedule.size();
  for (int64_t t = 0; t < n; ++t) {
    const int32_t from = std::max(schedule.first[t].value, begin);
    const int32_t to = std::min(schedule.first[t].value + schedule.count[t], end);
    for (int32_t c = from; c < to; ++c) rows[next[c - begin]++] = static_cast<int32_t>(t);
  }
}

}  // namespace

void ForEachChunk(const Schedule& schedule, int64_t chunks,
                  const std::function<void(ChunkId, std::span<const int32_t>)>& visit) {
  XCCL_CHECK(chunks <= std::numeric_limits<int32_t>::max());
  std::vector<int64_t> size(static_cast<size_t>(chunks) + 1, 0);
  for (int64_t t = 0; t < schedule.size(); ++t) {
    ++size[schedule.first[t].value];
    --size[schedule.first[t].value + schedule.count[t]];
  }
  for (int64_t c = 1; c < chunks; ++c) size[c] += size[c - 1];

  std::vector<int64_t> next;
  std::vector<int32_t> rows;
  for (int32_t begin = 0; begin < chunks;) {
    next.clear();
    int64_t entries = 0;
    int32_t end = begin;
    while (end < chunks && (end == begin || entries + size[end] <= kBlockEntries)) {
      next.push_back(entries);
      entries += size[end++];
    }
    rows.resize(static_cast<size_t>(entries));
    Fill(schedule, begin, end, next, rows);
    for (int32_t c = begin; c < end; ++c) {
      const int64_t last = next[c - begin];
      visit(ChunkId(c), std::span(rows).subspan(last - size[c], size[c]));
    }
    begin = end;
  }
}

}  // namespace xccl
