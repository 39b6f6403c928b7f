// Pass "moves": splits every transfer into moves. A move is one chunk on one path. It knows what comes before
// and after it at its sender and at its receiver.
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

// The sender of a move reads one place in memory. The receiver reads at most one place, and writes one. A
// chunk on a tree is one move for each branch; together they are a bundle. The moves that a fan-in adds up
// are a bundle, too. The send of the first move sends the whole bundle of a multicast. The receive of the
// first move receives the whole bundle of an in-switch reduction or a fan-in.
struct Move {
  ChunkId chunk = {};
  Rank src = {}, dst = {};
  int32_t path = 0;
  int32_t step = 0;
  int32_t number = 0;  // counts moves in order of transfer, then chunk, then path
  int32_t bundle = 0;  // the first move of its bundle; the move itself if it is alone
  int32_t bundle_size = 1;
  // The move that brought the value that is sent; kNoIndex: the value is the sender's input.
  int32_t feed = kNoIndex;
  int32_t previous = kNoIndex;  // the move that wrote the chunk at dst before this one
  // The first move of this move's group. A group is additions to the chunk at dst that may change places;
  // they follow one another by `previous`. A move that must keep its place is a group of its own.
  int32_t group = kNoIndex;
  int32_t overwriter = kNoIndex;  // the next move that writes the chunk at src, over the value that is sent
  // Reads of the value that this move leaves at dst, until the chunk is written there again. A value that the
  // postcondition wants is read once more.
  int32_t readers = 0;
  bool reduces = false;      // adds to the value at dst; else replaces it
  bool local_input = false;  // adds to the receiver's own input, not to the value that is held there
  bool complete = false;     // leaves the sum over all members at dst
  bool sends = true;         // false: the send of its bundle's first move sends this move, too
  bool receives = true;      // false: the receive of its bundle's first move receives this move, too
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
  // In order of step, then chunk, then as in the schedule. The moves of a bundle are neighbours.
  std::vector<Move> moves;
  std::vector<LocalCopy> copies;  // in order of rank, then chunk
  bool operator==(const Moves&) const = default;
};

// Splits the schedule into moves. Every move names its feed and its overwriter at the sender, and the write
// before it at the receiver, so that no later pass needs the schedule. With `times`, additions between two
// reads of a chunk come in order of arrival, unless several ranks must get the same bits or the collective is
// user-defined. Without `times`, they come in order of step. `only`: the chunks that the schedule moves,
// ascending, if it leaves others out, as the columns of a compressed schedule do; null: all chunks. Cost:
// linear, plus sorting each step by chunk. Requires a normalized schedule that verifies. Errors:
// kInvalidInput if int32_t cannot number two events for each move.
StatusOr<Moves> SplitByRank(const Schedule& schedule, const Paths& paths, const Collective& collective,
                            int32_t num_ranks, const MoveTimes* times,
                            const std::vector<ChunkId>* only = nullptr);

// Return one past the last move that is sent, or received, together with move m. Require that m itself is
// sent, or received.
inline int32_t EndOfSent(const std::vector<Move>& moves, int32_t m) {
  const bool all = moves[m].bundle == m && moves[m].bundle_size > 1 && !moves[m + 1].sends;
  return all ? m + moves[m].bundle_size : m + 1;
}
inline int32_t EndOfReceived(const std::vector<Move>& moves, int32_t m) {
  const bool all = moves[m].bundle == m && moves[m].bundle_size > 1 && !moves[m + 1].receives;
  return all ? m + moves[m].bundle_size : m + 1;
}
// Returns whether the move is added up with its bundle, by switches or by a fan-in.
inline bool IsAddedUp(const std::vector<Move>& moves, const Move& move) {
  return move.bundle_size > 1 && !moves[move.bundle + 1].receives;
}

}  // namespace xccl::lowering
