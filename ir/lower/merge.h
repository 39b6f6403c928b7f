// Joins moves of neighbouring chunks into one instruction at either end.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/lower/buffers.h"
#include "ir/lower/fuse.h"
#include "ir/lower/moves.h"
#include "ir/lower/order.h"
#include "ir/lower/threadblocks.h"

namespace xccl::lowering {

// Runs: moves of one way and step with consecutive chunks, and on all ways of a group the same. A run is one
// send and one receive (or one fused instruction, and then what it is fused with is a run of the same shape).
// It is sent at the place of its first move and received at that of its last, which keeps every order that
// OrderMoves promised.
struct Runs {
  std::vector<int32_t> previous;  // on its way, the move before this one in its run; kNoMove: it is the first
  std::vector<int32_t> length;    // of the first of a run; else 0
  std::vector<bool> last;         // is it the last of its run?
};

// At most `max_count` moves a run: a run is sent on only when all of it is there. Linear.
Runs MergeRuns(const Moves& moves, const Order& order, const Assignment& assignment, const Fusion& fusion,
               const Buffers& buffers, int32_t max_count);

}  // namespace xccl::lowering
