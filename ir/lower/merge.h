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
// have the same chunks. A run becomes one send and one receive. If its moves are fused with other moves,
// those other moves are a run of as many chunks. A run is sent at the place of its first move, and received
// at the place of its last move.
struct Runs {
  // By move:
  std::vector<int32_t> previous;  // the move before this move in its run; kNoIndex: this move is the first
  std::vector<int32_t> length;    // for the first move of a run, the number of its moves; else 0
  std::vector<bool> last;         // whether this move is the last of its run
  bool operator==(const Runs&) const = default;
};

// Returns runs of at most `max_count` moves. A program that sends and receives whole runs keeps every order
// that OrderMoves promises: a run is sent on only when all of its chunks are there. Linear.
Runs MergeRuns(const Moves& moves, const Order& order, const Assignment& assignment, const Fusion& fusion,
               const Buffers& buffers, int32_t max_count);

}  // namespace xccl::lowering
