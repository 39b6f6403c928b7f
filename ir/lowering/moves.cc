// Chunk by chunk: where each rank holds the chunk, which move left it there and how many contributions it
// has. A chunk's moves are visited in order of step; the reads of a step come before its writes.
#include "ir/lowering/moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace xccl::lowering {
namespace {

StatusOr<std::vector<Move>> ListMoves(const Schedule& schedule) {
  int64_t total = 0;
  for (int32_t count : schedule.count) total += count;
  if (total > kMaxMoves)
    return InvalidInput(fmt::format(
        "schedule: moves {} chunks in all; a program holds at most {}; hint: fewer chunks with --chunks",
        total, kMaxMoves));
  std::vector<Move> moves;
  moves.reserve(static_cast<size_t>(total));
  for (int64_t t = 0; t < schedule.size(); ++t) {
    const Transfer transfer = schedule.at(t);
    for (int32_t i = 0; i < transfer.count; ++i) {
      Move& move = moves.emplace_back();
      move.chunk = ChunkId(transfer.first.value + i);
      move.src = transfer.src;
      move.dst = transfer.dst;
      move.path = transfer.path;
      move.step = transfer.step;
      move.number = static_cast<int32_t>(moves.size()) - 1;
      move.reduces = transfer.op == TransferOp::kReduce;
    }
  }
  std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
    return std::tuple(a.step, a.chunk) < std::tuple(b.step, b.chunk);
  });
  return moves;
}

// One rank's share of the chunk that is being followed.
struct Cell {
  bool has_input = false;   // in the rank's input buffer
  bool has_output = false;  // the rank's output buffer has room for it
  bool held = false;        // some move has put it into output or scratch
  int32_t writer = kNoMove;
  int32_t contributions = 0;
  int32_t last_read = kNoMove;  // a list of the moves that sent it since it was last written
};

class Follower {
 public:
  Follower(const Collective& collective, int32_t num_ranks, std::vector<Move>& moves)
      : collective_(collective),
        moves_(moves),
        cells_(static_cast<size_t>(num_ranks)),
        read_before_(moves.size(), kNoMove),
        complete_(collective.Reduces() && collective.kind() != CollectiveKind::kCustom
                      ? collective.num_members()
                      : std::numeric_limits<int32_t>::max()) {}

  // `own` are the moves of chunk c, in order.
  void Follow(ChunkId c, std::span<const int32_t> own, std::vector<LocalCopy>& copies) {
    Begin(c);
    for (size_t i = 0; i < own.size();) {
      size_t end = i;
      while (end < own.size() && moves_[own[end]].step == moves_[own[i]].step) ++end;
      Step(own.subspan(i, end - i));
      i = end;
    }
    for (Rank r : touched_) {
      Cell& cell = cells_[r];
      if (cell.has_output && cell.writer != kNoMove) ++moves_[cell.writer].readers;
      if (cell.has_output && cell.has_input && !cell.held) copies.push_back({r, c});
      cell = Cell();
    }
    touched_.clear();
  }

 private:
  Cell& Touch(Rank r) {
    touched_.push_back(r);
    return cells_[r];
  }

  void Begin(ChunkId c) {
    collective_.Before(c, holdings_);
    for (const Holding& holding : holdings_) {
      Cell& cell = Touch(holding.rank);
      cell.has_input = true;
      cell.contributions = static_cast<int32_t>(holding.contributions.size());
    }
    collective_.After(c, holdings_);
    for (const Holding& holding : holdings_) Touch(holding.rank).has_output = true;
  }

  void Step(std::span<const int32_t> own) {
    sent_.clear();
    for (int32_t m : own) {
      Cell& from = Touch(moves_[m].src);
      read_before_[m] = from.last_read;
      from.last_read = m;
      moves_[m].feed = from.writer;
      if (from.writer != kNoMove) ++moves_[from.writer].readers;
      sent_.push_back(from.contributions);
    }
    for (size_t i = 0; i < own.size(); ++i) {
      Move& move = moves_[own[i]];
      Cell& to = Touch(move.dst);
      if (!to.held && !to.has_input) move.reduces = false;  // nothing there to add to
      move.previous = to.writer;
      for (int32_t& r = to.last_read; r != kNoMove; r = read_before_[r]) moves_[r].overwriter = own[i];
      if (to.writer != kNoMove && moves_[to.writer].step == move.step)
        move.crowded = moves_[to.writer].crowded = true;
      if (move.reduces) {
        move.local_input = !to.held;
        if (to.writer != kNoMove) ++moves_[to.writer].readers;
        to.contributions += sent_[i];
        move.complete = to.contributions == complete_;
      } else {
        to.contributions = sent_[i];
      }
      to.held = true;
      to.writer = own[i];
    }
  }

  const Collective& collective_;
  std::vector<Move>& moves_;
  IdVector<Rank, Cell> cells_;
  std::vector<int32_t> read_before_;  // by move: the one before it in its Cell::last_read
  const int32_t complete_;
  std::vector<Rank> touched_;
  std::vector<Holding> holdings_;
  std::vector<int32_t> sent_;
};

}  // namespace

StatusOr<Moves> SplitByRank(const Schedule& schedule, const Collective& collective,
                            const Topology& topology) {
  Moves result;
  XCCL_ASSIGN_OR_RETURN(result.moves, ListMoves(schedule));

  // Moves by chunk: a counting sort, which keeps the order.
  const size_t chunks = static_cast<size_t>(collective.num_chunks());
  std::vector<int32_t> first(chunks + 1, 0), by_chunk(result.moves.size());
  for (const Move& move : result.moves) ++first[move.chunk.index() + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<int32_t> next(first.begin(), first.end() - 1);
  for (size_t m = 0; m < result.moves.size(); ++m)
    by_chunk[static_cast<size_t>(next[result.moves[m].chunk.index()]++)] = static_cast<int32_t>(m);

  Follower follower(collective, topology.num_ranks(), result.moves);
  for (size_t c = 0; c < chunks; ++c)
    follower.Follow(ChunkId(static_cast<int64_t>(c)),
                    std::span(by_chunk).subspan(static_cast<size_t>(first[c]),
                                                static_cast<size_t>(first[c + 1] - first[c])),
                    result.copies);
  std::sort(result.copies.begin(), result.copies.end(), [](const LocalCopy& a, const LocalCopy& b) {
    return std::tuple(a.rank, a.chunk) < std::tuple(b.rank, b.chunk);
  });
  return result;
}

}  // namespace xccl::lowering
