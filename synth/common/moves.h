// Moves are an algorithm's transfers between ranks, in steps, before paths are chosen. RouteMoves chooses the
// paths and makes a Schedule.
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
  int32_t count = 0;
  bool operator==(const ChunkRange&) const = default;
};

// Returns the k-th of n nearly equal pieces of a range.
ChunkRange Piece(ChunkRange range, int32_t k, int32_t n);
// Returns the piece of a block of chunks that stripe k carries: piece (k + turn) mod stripes. A stripe is one
// of several copies of an algorithm, each of which carries a piece of every block. If a block has fewer
// chunks than stripes, some stripes get nothing; blocks with different turns leave out different stripes.
inline ChunkRange Share(ChunkRange block, int32_t k, int32_t stripes, int32_t turn) {
  return Piece(block, (k + turn) % stripes, stripes);
}

struct Move {
  ChunkRange chunks;
  Rank src, dst;
  int32_t step = 0;
  TransferOp op = TransferOp::kCopy;
  std::optional<HopId> hop = {};  // absent: all parallel hops from src to dst, or relays if there is no hop
};

class Moves {
 public:
  // Drops moves of no chunks and moves from a rank to itself.
  void Add(const Move& move) {
    if (move.chunks.count > 0 && move.src != move.dst) moves_.push_back(move);
  }
  void Reserve(size_t moves) { moves_.reserve(moves); }
  const std::vector<Move>& items() const { return moves_; }

 private:
  std::vector<Move> moves_;
};

// Returns the normalized schedule of the moves. Copies between ranks that are not neighbours go over relays.
// A step with relays becomes as many steps as its longest path has hops. Parallel cables share the chunks of
// a move that names no hop. If relays bring a rank a chunk again, the rank keeps only the first copy. With
// `repeats`, it also does so if the moves bring the chunk again. Linear in the transfers. Requires that
// `goal` has one owner for each chunk that moves. Errors: kInvalidInput "ENGINE: ..." if the moves make sums
// and a move needs relays, or if there is no path for a move.
StatusOr<Schedule> RouteMoves(const Moves& moves, const RankGraph& graph, const CopyGoal& goal, bool repeats,
                              std::string_view engine);

}  // namespace xccl
