// Pass "moves": every transfer split into moves, one chunk on one path each, seen from both ends.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/lower/paths.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"

namespace xccl::lowering {

inline constexpr int32_t kNoMove = -1;  // in columns of move indices, which are compact on purpose
inline constexpr int64_t kMaxMoves = int64_t{1} << 29;

// Its sender reads one place; its receiver reads and writes at most one place each. A chunk on a tree is one
// move for each branch, and these are a bundle; so are the moves of a fan-in. A multicast sends its bundle at
// once, by the first move; a reduction in switches and a fan-in receive their bundle at once, by the first.
struct Move {
  ChunkId chunk = {};
  Rank src = {}, dst = {};
  int32_t path = 0;
  int32_t step = 0;
  int32_t number = 0;  // in order of transfer, then chunk, then path
  int32_t bundle = 0;  // the first move of its bundle, which may be itself alone
  int32_t bundle_size = 1;
  int32_t feed = kNoMove;  // the move that put the value where it is sent from; kNoMove: the sender's input
  int32_t previous = kNoMove;  // the move that wrote the chunk at dst before this one
  int32_t group = kNoMove;  // the first of the moves that may write the chunk at dst in any order with this
                            // one; they follow one another by `previous`
  int32_t overwriter = kNoMove;  // the move that writes the chunk at src next, over the value that is sent
  int32_t readers = 0;       // reads of the value that this move leaves at dst, until it is written again;
                             // the postcondition counts as one
  bool reduces = false;      // else it copies
  bool local_input = false;  // adds to the receiver's own input, not to the value that is held there
  bool complete = false;     // makes the sum over all members
  bool sends = true;         // else the first of its bundle is sent for it
  bool receives = true;      // else the first of its bundle is received for it
  bool crowded = false;      // another move of the step adds to the same chunk of the receiver
  bool operator==(const Move&) const = default;
};

// A chunk that a rank needs in its output and already has in its input.
struct LocalCopy {
  Rank rank;
  ChunkId chunk;
  bool operator==(const LocalCopy&) const = default;
};

struct Moves {
  std::vector<Move> moves;        // by step, then chunk, then as in the schedule; a bundle stands together
  std::vector<LocalCopy> copies;  // by rank, then chunk
  bool operator==(const Moves&) const = default;
};

// Guarantees that every move names its feed, its predecessor and its successor at either end, so that later
// passes need the schedule no more. With `times`, additions between two reads of a chunk are ordered by
// arrival, unless several ranks must add up the same bits; without, by step. Cost: linear, beside sorting
// each step by chunk. Requires: a normalized schedule that verifies. Errors: kInvalidInput beyond kMaxMoves.
StatusOr<Moves> SplitByRank(const Schedule& schedule, const Paths& paths, const Collective& collective,
                            int32_t num_ranks, const MoveTimes* times);

// One past the last of the moves that are sent, or received, together with move m, which is their first.
inline int32_t EndOfSent(const std::vector<Move>& moves, int32_t m) {
  const bool all = moves[m].bundle == m && moves[m].bundle_size > 1 && !moves[m + 1].sends;
  return all ? m + moves[m].bundle_size : m + 1;
}
inline int32_t EndOfReceived(const std::vector<Move>& moves, int32_t m) {
  const bool all = moves[m].bundle == m && moves[m].bundle_size > 1 && !moves[m + 1].receives;
  return all ? m + moves[m].bundle_size : m + 1;
}
// Do switches or a fan-in add up the move and its bundle?
inline bool IsAddedUp(const std::vector<Move>& moves, const Move& move) {
  return move.bundle_size > 1 && !moves[move.bundle + 1].receives;
}

}  // namespace xccl::lowering
