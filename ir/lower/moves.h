// What the passes share: the schedule seen chunk by chunk from both ends. A move is one chunk of a transfer;
// its sender reads one place, its receiver reads and writes at most one place each. What a tree carries is
// one move for each of its branches, a bundle: a multicast sends all of them at once, by the first, and a
// reduction in switches receives all of them at once, by the first.
//
// Moves are sorted by step, then by chunk, then as in the schedule; a bundle stands together.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/lower/ways.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "topologies/topology.h"

namespace xccl::lowering {

inline constexpr int32_t kNoMove = -1;  // in columns of move indices, which are compact on purpose
inline constexpr int64_t kMaxMoves = int64_t{1} << 29;

struct Move {
  ChunkId chunk;
  Rank src, dst;
  int32_t way = 0;
  int32_t step = 0;
  int32_t number = 0;  // in order of transfer, then chunk, then way
  int32_t bundle = 0;  // the first move of its bundle, which may be itself alone
  int32_t bundle_size = 1;
  int32_t feed = kNoMove;      // the move that put what is sent where it lies; kNoMove: the sender's input
  int32_t previous = kNoMove;  // the move that wrote the chunk at dst before this one
  int32_t group = kNoMove;  // the first of the moves that may write the chunk at dst in any order with this
                            // one; they follow one another by `previous`
  int32_t overwriter = kNoMove;  // the move that next writes the chunk at src, where what is sent lies
  int32_t readers = 0;           // how often what this move leaves at dst is read before it is written again,
                                 // the postcondition included
  bool reduces = false;          // else it copies
  bool local_input = false;      // reduces with the receiver's own input, not with what is held there
  bool complete = false;         // reduces to the sum over all members
  bool sends = true;             // else the first of its bundle is sent for it
  bool receives = true;          // else the first of its bundle is received with it
  bool crowded = false;          // another move of the step adds to the same chunk of the receiver
};

// A chunk that a rank needs in its output and already has in its input.
struct LocalCopy {
  Rank rank;
  ChunkId chunk;
};

struct Moves {
  std::vector<Move> moves;
  std::vector<LocalCopy> copies;  // by rank, then chunk
};

// The first pass. Splits every transfer into moves and follows each chunk through the schedule. Cost: linear,
// beside sorting each step by chunk. Where `times` is given, what is added to a chunk between two reads is
// added in the order in which it arrives, if no other rank has to add up the same bits; else in order of
// step. Requires: a normalized schedule that verifies. Errors: kInvalidInput for more than
// kMaxMoves.
StatusOr<Moves> SplitByRank(const Schedule& schedule, const Ways& ways, const Collective& collective,
                            const Topology& topology, const MoveTimes* times);

}  // namespace xccl::lowering
