// Pass "merge": joins moves of neighbouring chunks into one instruction at either end.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/lower/buffers.h"
#include "ir/lower/fuse.h"
#include "ir/lower/moves.h"
#include "ir/lower/order.h"
#include "ir/lower/threadblocks.h"

namespace xccl::lowering {

// A run is several moves of one path and step with consecutive chunks; in a group, the same on all of its
// paths. It becomes one send and one receive, or one fused instruction whose partner is a run of the same
// shape. It is sent at the place of its first move and received at that of its last.
struct Runs {
  std::vector<int32_t> previous;  // the move before this one in its run; kNoMove: it is the first
  std::vector<int32_t> length;    // of the first of a run; else 0
  std::vector<bool> last;         // is it the last of its run?
  bool operator==(const Runs&) const = default;
};

// Guarantees that runs keep every order that OrderMoves promises, with at most `max_count` moves each: a run
// is sent on only when all of it is there. Linear.
Runs MergeRuns(const Moves& moves, const Order& order, const Assignment& assignment, const Fusion& fusion,
               const Buffers& buffers, int32_t max_count);

}  // namespace xccl::lowering
