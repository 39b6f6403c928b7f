// An algorithm's transfers before links are chosen: chunks move from rank to rank in steps. RouteMoves turns
// moves into a Schedule.
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
// Stripe k's piece of a block: the pieces are dealt out from stripe `turn` on, so that blocks of fewer chunks
// than stripes spread over all stripes when their turns differ.
inline ChunkRange Share(ChunkRange block, int32_t k, int32_t stripes, int32_t turn) {
  return Piece(block, (k + turn) % stripes, stripes);
}

struct Move {
  ChunkRange chunks;
  Rank src, dst;
  int32_t step = 0;
  TransferOp op = TransferOp::kCopy;
  std::optional<HopId> hop = {};  // absent: the best one, or over relays
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

// Relays join ranks that are not neighbours, for copies only. A step then lasts as many steps as its longest
// path has hops. A rank gets each chunk once, even where relays or the moves themselves repeat it. Parallel
// cables take turns. Errors: kInvalidInput "ENGINE: ..." where a sum would have to pass a relay, or no path
// exists. `goal` has one owner for each chunk that is moved. The result is normalized. Linear in the
// transfers.
StatusOr<Schedule> RouteMoves(const Moves& moves, const RankGraph& graph, const CopyGoal& goal, bool repeats,
                              std::string_view engine);

}  // namespace xccl
