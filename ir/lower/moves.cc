// Follows one chunk at a time. Every rank's cell says where the rank holds the chunk, which move left it
// there, and how many contributions it has. The chunk's moves are visited in order of step; all reads of a
// step come before its writes. Moves that add to one cell may come in any order until the cell is read; the
// order is settled then.
#include "ir/lower/moves.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "base/graph/grouped.h"

namespace xccl::lowering {
namespace {

int64_t CountMoves(const Schedule& schedule, const Paths& paths) {
  int64_t total = 0;
  for (int64_t t = 0, unit = 0; t < schedule.size(); unit += schedule.count[t], ++t) {
    if (paths.of_unit.empty()) {
      const auto [first, end] = paths.OfUnit(schedule, t, unit);
      total += static_cast<int64_t>(schedule.count[t]) * (end - first);
      continue;
    }
    for (int32_t i = 0; i < schedule.count[t]; ++i) {
      const auto [first, end] = paths.OfUnit(schedule, t, unit + i);
      total += end - first;
    }
  }
  return total;
}

// Sorts moves by step and chunk, so that the moves of a bundle are neighbours, in the order of their paths.
void SortIntoBundles(const Paths& paths, std::vector<Move>& moves) {
  // The moves of a fan-in come from several transfers. All of them get the place of the first one.
  std::map<std::tuple<int32_t, int32_t, ChunkId>, int32_t> first_of;
  const auto is_fan_in = [&](const Move& move) {
    const int32_t group = paths.paths[move.path].group;
    return group != kNoIndex && paths.groups[group].kind == Group::Kind::kFanIn;
  };
  for (Move& move : moves) {
    move.bundle = move.number;
    if (!paths.of_unit.empty() && is_fan_in(move))
      move.bundle =
          first_of.emplace(std::tuple(paths.paths[move.path].group, move.step, move.chunk), move.number)
              .first->second;
  }
  std::stable_sort(moves.begin(), moves.end(), [&](const Move& a, const Move& b) {
    const auto key = [&](const Move& m) { return std::tuple(m.step, m.chunk, m.bundle); };
    return key(a) != key(b) ? key(a) < key(b) : a.path < b.path;
  });
  for (size_t m = 0; m < moves.size(); m += static_cast<size_t>(moves[m].bundle_size))
    for (size_t i = m; i < m + static_cast<size_t>(moves[m].bundle_size); ++i)
      moves[i].bundle = static_cast<int32_t>(m);
}

StatusOr<std::vector<Move>> ListMoves(const Schedule& schedule, const Paths& paths) {
  const int64_t total = CountMoves(schedule, paths);
  const int64_t most = std::numeric_limits<int32_t>::max() / 2;  // events are numbered, two a move
  if (total > most)
    return InvalidInput(fmt::format(
        "schedule: moves {} chunks in all; a program holds at most {}; hint: fewer chunks with --chunks",
        total, most));
  std::vector<Move> moves;
  moves.reserve(static_cast<size_t>(total));
  int64_t unit = 0;
  for (int64_t t = 0; t < schedule.size(); ++t) {
    const Transfer transfer = schedule.at(t);
    for (int32_t i = 0; i < transfer.count; ++i, ++unit) {
      const auto [first_path, end_path] = paths.OfUnit(schedule, t, unit);
      for (int32_t path = first_path; path < end_path; ++path) {
        const int32_t group = paths.paths[path].group;
        Move& move = moves.emplace_back();
        move.chunk = ChunkId(transfer.first.value + i);
        move.src = paths.paths[path].src;
        move.dst = paths.paths[path].dst;
        move.path = path;
        move.step = transfer.step;
        move.number = static_cast<int32_t>(moves.size()) - 1;
        move.bundle_size = group == kNoIndex ? 1 : paths.groups[group].count;
        move.sends = paths.SendUnit(path) == path;
        move.receives = paths.RecvUnit(path) == path;
        move.reduces = transfer.op == TransferOp::kReduce;
      }
    }
  }
  SortIntoBundles(paths, moves);
  return moves;
}

// The state, at one rank, of the chunk that is followed.
struct Cell {
  bool has_input = false;   // in the rank's input buffer
  bool has_output = false;  // the rank's output buffer has room for it
  bool held = false;        // some move has put it into output or scratch
  int32_t writer = kNoIndex;
  int32_t contributions = 0;
  int32_t last_read = kNoIndex;   // heads a list (before_) of the moves that sent it since its last write
  int32_t last_added = kNoIndex;  // heads a list (added_before_) of the additions whose order is not settled
};

class Follower {
 public:
  Follower(const Collective& collective, int32_t num_ranks, const MoveTimes* times, std::vector<Move>& moves)
      : collective_(collective),
        moves_(moves),
        times_(collective.kind() == CollectiveKind::kCustom ? nullptr : times),
        cells_(static_cast<size_t>(num_ranks)),
        before_(moves.size(), kNoIndex),
        added_before_(moves.size(), kNoIndex),
        complete_(collective.Reduces() && collective.kind() != CollectiveKind::kCustom
                      ? collective.num_members()
                      : std::numeric_limits<int32_t>::max()) {}

  // Follows chunk c through its moves `own`, which are in order. Adds its local copies to `copies`.
  void Follow(ChunkId c, std::span<const int32_t> own, std::vector<LocalCopy>& copies) {
    const bool same_sums =
        collective_.kind() == CollectiveKind::kAllreduce || collective_.kind() == CollectiveKind::kBarrier;
    by_time_ = times_ != nullptr && (!same_sums || SumsOnce(c, own));
    Begin(c);
    EachStep(own, [&](std::span<const int32_t> same_step) { Step(same_step); });
    for (Rank r : touched_) {
      Cell& cell = cells_[r];
      Settle(cell);
      if (cell.has_output && cell.writer != kNoIndex) ++moves_[cell.writer].readers;
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

  template <typename Action>
  void EachStep(std::span<const int32_t> own, Action action) const {
    for (size_t i = 0; i < own.size();) {
      size_t end = i;
      while (end < own.size() && moves_[own[end]].step == moves_[own[i]].step) ++end;
      action(own.subspan(i, end - i));
      i = end;
    }
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

  // Notes the contributions that each move of a step carries: as many as its sender had before the step.
  void Read(std::span<const int32_t> own) {
    sent_.clear();
    for (int32_t m : own) sent_.push_back(Touch(moves_[m].src).contributions);
  }

  // Returns the number of contributions that the move `own[i]` brings, with its bundle. Requires that
  // Read(own) was called, and that the move receives.
  int32_t Brings(std::span<const int32_t> own, size_t i) const {
    const Move& move = moves_[own[i]];
    if (!IsAddedUp(moves_, move)) return sent_[i];
    const auto first = sent_.begin() + static_cast<int64_t>(i);  // a bundle stands together
    return std::accumulate(first, first + move.bundle_size, 0);
  }

  // Returns whether no two ranks complete the sum. Any order of additions then gives all ranks the same bits.
  bool SumsOnce(ChunkId c, std::span<const int32_t> own) {
    Begin(c);
    int32_t sums = 0;
    EachStep(own, [&](std::span<const int32_t> same_step) {
      Read(same_step);
      for (size_t i = 0; i < same_step.size(); ++i) {
        const Move& move = moves_[same_step[i]];
        if (!move.receives) continue;
        int32_t& contributions = Touch(move.dst).contributions;
        contributions = (move.reduces ? contributions : 0) + Brings(same_step, i);
        sums += (move.reduces || IsAddedUp(moves_, move)) && contributions == complete_ ? 1 : 0;
      }
    });
    for (Rank r : touched_) cells_[r] = Cell();
    touched_.clear();
    return sums <= 1;
  }

  void Step(std::span<const int32_t> own) {
    Read(own);
    for (int32_t m : own) {
      if (!moves_[m].sends) {
        moves_[m].feed = moves_[moves_[m].bundle].feed;
        continue;
      }
      Cell& from = cells_[moves_[m].src];
      Settle(from);
      before_[m] = from.last_read;
      from.last_read = m;
      moves_[m].feed = from.writer;
      if (from.writer != kNoIndex) ++moves_[from.writer].readers;
    }
    for (size_t i = 0; i < own.size(); ++i) {
      Move& move = moves_[own[i]];
      if (!move.receives) continue;
      Cell& to = Touch(move.dst);
      if (move.reduces) {
        to.contributions += Brings(own, i);
        added_before_[own[i]] = to.last_added;
        to.last_added = own[i];
      } else {
        Settle(to);
        to.contributions = Brings(own, i);
        Write(own[i], to);
        move.complete = IsAddedUp(moves_, move) && to.contributions == complete_;
      }
    }
  }

  // Settles the order of the additions to a cell since its value was last read or replaced.
  void Settle(Cell& cell) {
    if (cell.last_added == kNoIndex) return;
    group_.clear();
    for (int32_t m = cell.last_added; m != kNoIndex; m = added_before_[m]) group_.push_back(m);
    cell.last_added = kNoIndex;
    std::reverse(group_.begin(), group_.end());
    for (size_t i = 1; i < group_.size(); ++i)
      if (moves_[group_[i]].step == moves_[group_[i - 1]].step)
        moves_[group_[i]].crowded = moves_[group_[i - 1]].crowded = true;
    if (by_time_) {
      std::stable_sort(group_.begin(), group_.end(), [&](int32_t a, int32_t b) {
        return times_->arrival_ps[moves_[a].number] < times_->arrival_ps[moves_[b].number];
      });
    }
    for (int32_t m : group_) {
      Move& move = moves_[m];
      if (!cell.held && !cell.has_input) move.reduces = false;  // nothing there to add to
      move.local_input = move.reduces && !cell.held;
      if (move.reduces && cell.writer != kNoIndex) ++moves_[cell.writer].readers;
      Write(m, cell);
      if (by_time_) move.group = group_.front();
    }
    Move& last = moves_[cell.writer];
    last.complete = (last.reduces || IsAddedUp(moves_, last)) && cell.contributions == complete_;
  }

  void Write(int32_t m, Cell& to) {
    moves_[m].previous = to.writer;
    moves_[m].group = m;
    for (int32_t& r = to.last_read; r != kNoIndex; r = before_[r]) moves_[r].overwriter = m;
    to.held = true;
    to.writer = m;
  }

  const Collective& collective_;
  std::vector<Move>& moves_;
  const MoveTimes* const times_;
  IdVector<Rank, Cell> cells_;
  std::vector<int32_t> before_;        // by move: the next one of the list that Cell::last_read heads
  std::vector<int32_t> added_before_;  // by move: the next one of the list that Cell::last_added heads
  const int32_t complete_;             // contributions of a complete sum
  bool by_time_ = false;
  std::vector<Rank> touched_;
  std::vector<Holding> holdings_;
  std::vector<int32_t> sent_, group_;
};

}  // namespace

StatusOr<Moves> SplitByRank(const Schedule& schedule, const Paths& paths, const Collective& collective,
                            int32_t num_ranks, const MoveTimes* times, const std::vector<ChunkId>* only) {
  Moves result;
  XCCL_ASSIGN_OR_RETURN(result.moves, ListMoves(schedule, paths));

  const bool has_last = only != nullptr && !only->empty();
  const size_t chunks = has_last ? only->back().index() + 1 : static_cast<size_t>(collective.num_chunks());
  const auto by_chunk = GroupItems<int32_t>(chunks, [&](auto add) {
    for (size_t m = 0; m < result.moves.size(); ++m)
      add(result.moves[m].chunk.index(), static_cast<int32_t>(m));
  });

  Follower follower(collective, num_ranks, times, result.moves);
  for (size_t c = 0; c < by_chunk.size() && only == nullptr; ++c)
    follower.Follow(ChunkId(static_cast<int64_t>(c)), by_chunk[c], result.copies);
  for (size_t i = 0; only != nullptr && i < only->size(); ++i)
    follower.Follow((*only)[i], by_chunk[(*only)[i].index()], result.copies);
  std::sort(result.copies.begin(), result.copies.end(), [](const LocalCopy& a, const LocalCopy& b) {
    return std::tuple(a.rank, a.chunk) < std::tuple(b.rank, b.chunk);
  });
  return result;
}

}  // namespace xccl::lowering
