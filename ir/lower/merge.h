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

// A run is one move or several moves of one path and step with consecutive chunks. Runs of a group's paths
// have the same chunks. A run becomes one send and one receive; where its moves are fused, the
// moves that they are fused with are a run of as many chunks. A run is sent at the place of its first move,
// and received at the place of its last.
struct Runs {
  // By move:
  std::vector<int32_t> previous;  // the move before this one in its run; kNoIndex: this one is the first
  std::vector<int32_t> length;    // the moves of the run where this one is the first; else 0
  std::vector<bool> last;         // is this one the last of its run?
  bool operator==(const Runs&) const = default;
};

// Guarantees that a program that sends and receives whole runs keeps every order that OrderMoves promises: a
// run is sent on only when all of its chunks are there. A run has at most `max_count` moves. Linear.
Runs MergeRuns(const Moves& moves, const Order& order, const Assignment& assignment, const Fusion& fusion,
               const Buffers& buffers, int32_t max_count);

}  // namespace xccl::lowering
