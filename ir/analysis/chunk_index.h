// The transfers of each chunk, for code that checks a schedule chunk by chunk. Ranges are expanded for a
// bounded block of chunks at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "ir/schedule.h"

namespace xccl {

// Calls `visit` for each of the first `chunks` chunks in order, with the indices of the transfers that move
// the chunk, in column order. Requires: schedule.moved_chunks() <= chunks < 2^31, columns of equal length,
// fewer than 2^31 transfers. Cost: linear in chunks + Σ count, plus a pass over the transfers for every 64
// million of Σ count. Memory: linear in the chunks, plus up to 64 million indices.
void ForEachChunk(const Schedule& schedule, int64_t chunks,
                  const std::function<void(ChunkId, std::span<const int32_t>)>& visit);
// Calls `visit` for the chunks up to the last one that is moved.
inline void ForEachMovedChunk(const Schedule& schedule,
                              const std::function<void(ChunkId, std::span<const int32_t>)>& visit) {
  ForEachChunk(schedule, schedule.moved_chunks(), visit);
}

// Calls visit(span) for the transfers of each step. Requires: `transfers` in order of step, as ForEachChunk
// gives them.
template <typename Visit>
void ForEachStep(const Schedule& schedule, std::span<const int32_t> transfers, Visit visit) {
  for (size_t begin = 0; begin < transfers.size();) {
    size_t end = begin;
    while (end < transfers.size() && schedule.step[transfers[end]] == schedule.step[transfers[begin]]) ++end;
    visit(transfers.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace xccl
