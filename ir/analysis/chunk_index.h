// The transfers of each chunk, for code that checks a schedule chunk by chunk. Ranges are expanded for a
// bounded block of chunks at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "ir/schedule.h"

namespace xccl {

// Calls `visit` for every chunk in order, with the indices of the transfers that move it, in column order.
// Requires: columns of equal length, fewer than 2^31 transfers, chunk ranges within 0..num_chunks. Cost:
// linear in Σ count, plus a pass over the transfers for every 64 million of it. Memory is bounded.
void ForEachChunk(const Schedule& schedule,
                  const std::function<void(ChunkId, std::span<const int32_t>)>& visit);

// Calls visit(span) for the transfers of each step. Requires: in order of step, as ForEachChunk gives them.
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
