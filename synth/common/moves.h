// Moves: an algorithm's transfers from rank to rank, in steps, before paths are chosen. RouteMoves chooses
// the paths and makes a Schedule.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "synth/common/rank_graph.h"
#include "synth/common/reverse.h"

namespace xccl {

struct ChunkRange {
  int32_t first = 0;
  int32_t count = 0;  // zero: no chunks
  bool operator==(const ChunkRange&) const = default;
};

// The k-th of n nearly equal pieces of a range.
ChunkRange Piece(ChunkRange range, int32_t k, int32_t n);
// Stripe k's piece of a block. Pieces are dealt out from stripe `turn` on: with different turns, blocks of
// fewer chunks than stripes use all stripes.
inline ChunkRange Share(ChunkRange block, int32_t k, int32_t stripes, int32_t turn) {
  return Piece(block, (k + turn) % stripes, stripes);
}

struct Move {
  ChunkRange chunks;
  Rank src, dst;
  int32_t step = 0;
  TransferOp op = TransferOp::kCopy;
  std::optional<HopId> hop = {};  // absent: the best hop from src to dst, or a path over relays
};

class Moves {
 public:
  // Moves of no chunks, and of a rank to itself, are dropped.
  void Add(const Move& move) {
    if (move.chunks.count > 0 && move.src != move.dst) moves_.push_back(move);
  }
  void Reserve(size_t moves) { moves_.reserve(moves); }
  const std::vector<Move>& items() const { return moves_; }

 private:
  std::vector<Move> moves_;
};

// The schedule of the moves, normalized. Copies between ranks that are not neighbours pass relays; a step
// then becomes as many steps as its longest path has hops. Each rank gets each chunk once, even if relays or
// (with `repeats`) the moves themselves bring it again. Parallel cables take turns. `goal` has one owner for
// each chunk that moves. Linear in the transfers. Errors: kInvalidInput "ENGINE: ..." if a sum would pass a
// relay; kInfeasible if there is no path.
StatusOr<Schedule> RouteMoves(const Moves& moves, const RankGraph& graph, const CopyGoal& goal, bool repeats,
                              std::string_view engine);

}  // namespace xccl
