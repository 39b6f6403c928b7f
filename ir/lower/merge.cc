// A join puts a move into the run of the move before it on its path. The pass starts with every join that the
// sender and the receiver of the two moves allow. It then undoes joins until nothing changes. Two moves do
// not stay joined if the moves that they are fused with are not joined. A run is cut if it is too long, or if
// its early send or its late receive would pass another access to one of its chunks. A bundle joins as a
// whole or not at all.
#include "ir/lower/merge.h"

namespace xccl::lowering {
namespace {

// Returns whether two moves of one path may be one instruction at both ends. If the first move of a bundle is
// sent or received for all of them, the other moves allow every join at that end.
bool SameShape(const Moves& moves, const Fusion& fusion, const Buffers& buffers, int32_t a, int32_t b) {
  const Move& x = moves.moves[a];
  const Move& y = moves.moves[b];
  const auto fed_from = [&](const Move& m) {
    return m.feed == kNoIndex ? 0 : buffers.InOutput(m.src, m.chunk) ? 1 : 2;
  };
  if (x.step != y.step || x.chunk.value + 1 != y.chunk.value) return false;
  const bool sent_alike =
      fed_from(x) == fed_from(y) && (fusion.recv_of[a] == kNoIndex) == (fusion.recv_of[b] == kNoIndex);
  // If several moves add to one chunk in a step, each keeps its place among the additions.
  const bool received_alike = !x.crowded && !y.crowded && x.reduces == y.reduces &&
                              x.local_input == y.local_input && x.complete == y.complete &&
                              IsStored(moves, fusion, a) == IsStored(moves, fusion, b) &&
                              buffers.InOutput(x.dst, x.chunk) == buffers.InOutput(y.dst, y.chunk) &&
                              (fusion.send_of[a] == kNoIndex) == (fusion.send_of[b] == kNoIndex);
  return (!x.sends || sent_alike) && (!x.receives || received_alike);
}

// Returns, by move, the move before it on its path, if the two are neighbours in the instruction lists of
// both threadblocks; else kNoIndex.
std::vector<int32_t> Neighbours(const Moves& moves, const Order& order, const Assignment& assignment,
                                const Fusion& fusion) {
  const size_t count = moves.moves.size();
  IdVector<Rank, std::vector<int32_t>> length(static_cast<size_t>(assignment.blocks.size()));
  for (Rank r(0); r.value < length.size(); ++r.value) length[r].assign(assignment.blocks[r].size(), 0);
  std::vector<int32_t> sent_at(count), received_at(count), before(count, kNoIndex);
  std::vector<int32_t> last_of(assignment.channel.size(), kNoIndex);
  for (int32_t event : order.events) {
    const int32_t m = event / 2;
    const Move& move = moves.moves[m];
    const int32_t c = move.path;
    if (event % 2 != 0) {
      received_at[m] = length[move.dst][assignment.recv_block[c]]++;
      continue;
    }
    if (fusion.recv_of[m] == kNoIndex) sent_at[m] = length[move.src][assignment.send_block[c]]++;
    for (int32_t with = m; with < EndOfSent(moves.moves, m); ++with) {
      int32_t& last = last_of[moves.moves[with].path];
      before[with] = last;
      last = with;
    }
  }
  for (size_t m = 0; m < count; ++m) {
    const int32_t p = before[m];
    if (p == kNoIndex) continue;
    const Move& move = moves.moves[m];
    // A fused send stands where its receive stands.
    const bool apart_sent = move.sends && fusion.recv_of[m] == kNoIndex && sent_at[m] != sent_at[p] + 1;
    const bool apart_received = move.receives && received_at[m] != received_at[p] + 1;
    if (apart_sent || apart_received) before[m] = kNoIndex;
  }
  return before;
}

// Undoes the joins of bundles that do not join as a whole.
void JoinWholeBundles(const Moves& moves, std::vector<int32_t>& previous) {
  for (size_t m = 0; m < previous.size(); m += static_cast<size_t>(moves.moves[m].bundle_size)) {
    const size_t end = m + static_cast<size_t>(moves.moves[m].bundle_size);
    const int32_t before = previous[m];
    bool whole = true;
    for (size_t i = m; i < end; ++i)
      whole = whole && before != kNoIndex && previous[i] == before + static_cast<int32_t>(i - m);
    for (size_t i = m; i < end && !whole; ++i) previous[i] = kNoIndex;
  }
}

class Merger {
 public:
  Merger(const Moves& moves, const Order& order, const Fusion& fusion)
      : moves_(moves), order_(order), fusion_(fusion), count_(static_cast<int32_t>(moves.moves.size())) {}

  Runs Merge(std::vector<int32_t> previous, int32_t max_count) {
    runs_.previous = std::move(previous);
    for (int32_t m = 0; m < count_; ++m) Check(m);
    do {
      LetFall();
      Measure(max_count);
    } while (CutWhereOrderBreaks());
    return std::move(runs_);
  }

 private:
  const Move& At(int32_t m) const { return moves_.moves[m]; }

  // Undoes the joins of move m's bundle.
  void Cut(int32_t m) {
    const int32_t first = At(m).bundle, end = first + At(m).bundle_size;
    for (int32_t with = first; with < end; ++with) {
      runs_.previous[with] = kNoIndex;
      fallen_.push_back(with);
    }
  }

  // Undoes the join of move m unless the moves that it is fused with join in the same way.
  void Check(int32_t m) {
    const int32_t p = runs_.previous[m];
    if (p == kNoIndex) return;
    const auto follows = [&](int32_t partner, int32_t partner_of_previous) {
      return partner == kNoIndex || runs_.previous[partner] == partner_of_previous;
    };
    if (!follows(fusion_.send_of[m], fusion_.send_of[p]) || !follows(fusion_.recv_of[m], fusion_.recv_of[p]))
      Cut(m);
  }
  void LetFall() {
    while (!fallen_.empty()) {
      const int32_t m = fallen_.back();
      fallen_.pop_back();
      if (fusion_.send_of[m] != kNoIndex) Check(fusion_.send_of[m]);
      if (fusion_.recv_of[m] != kNoIndex) Check(fusion_.recv_of[m]);
    }
  }

  void Measure(int32_t max_count) {
    runs_.length.assign(static_cast<size_t>(count_), 0);
    runs_.last.assign(static_cast<size_t>(count_), true);
    head_.assign(static_cast<size_t>(count_), kNoIndex);
    next_.assign(static_cast<size_t>(count_), kNoIndex);
    last_.assign(static_cast<size_t>(count_), kNoIndex);
    for (int32_t event : order_.events) {
      if (event % 2 != 0) continue;
      for (int32_t m = event / 2; m < EndOfSent(moves_.moves, event / 2); ++m) Measure(m, max_count);
    }
  }
  void Measure(int32_t m, int32_t max_count) {
    int32_t& p = runs_.previous[m];
    if (p != kNoIndex && runs_.length[head_[p]] == max_count) p = kNoIndex;
    head_[m] = p == kNoIndex ? m : head_[p];
    last_[head_[m]] = m;
    if (p != kNoIndex) {
      runs_.last[p] = false;
      next_[p] = m;
    }
    ++runs_.length[head_[m]];
  }

  // Return the places of the instructions that receive and send a move.
  int32_t ReceivedAt(int32_t m) const { return order_.recv_place[last_[head_[m]]]; }
  int32_t SentAt(int32_t m) const {
    if (!At(m).sends) m = At(m).bundle;
    const int32_t fused = fusion_.recv_of[m];
    return fused != kNoIndex ? ReceivedAt(fused) : order_.send_place[head_[m]];
  }
  void CutBefore(int32_t m) {
    if (runs_.previous[m] != kNoIndex) Cut(m);
  }
  void CutAfter(int32_t m) {
    if (next_[m] != kNoIndex) CutBefore(next_[m]);
  }

  // Cuts runs so that each rank accesses a chunk in the right order: a value is received before it is sent
  // on, and sent before it is overwritten, and writes keep their order. Returns whether a join was undone.
  bool CutWhereOrderBreaks() {
    for (int32_t m = 0; m < count_; ++m) {
      const Move& move = At(m);
      if (move.sends && move.feed != kNoIndex && fusion_.recv_of[m] != move.feed &&
          ReceivedAt(move.feed) > SentAt(m)) {
        CutBefore(m);
        CutAfter(move.feed);
      }
      if (move.previous != kNoIndex && ReceivedAt(move.previous) > ReceivedAt(m)) CutAfter(move.previous);
      if (move.overwriter != kNoIndex && SentAt(m) > ReceivedAt(move.overwriter))
        CutAfter(fusion_.recv_of[m]);  // only the receive that it is fused with makes a send late
    }
    return !fallen_.empty();
  }

  const Moves& moves_;
  const Order& order_;
  const Fusion& fusion_;
  const int32_t count_;
  Runs runs_;
  std::vector<int32_t> fallen_;
  std::vector<int32_t> head_, next_;  // by move: the first move of its run; the next move of its run
  std::vector<int32_t> last_;         // by the first move of a run: the last one
};

}  // namespace

Runs MergeRuns(const Moves& moves, const Order& order, const Assignment& assignment, const Fusion& fusion,
               const Buffers& buffers, int32_t max_count) {
  std::vector<int32_t> previous = Neighbours(moves, order, assignment, fusion);
  for (int32_t m = 0; m < static_cast<int32_t>(previous.size()); ++m) {
    int32_t& p = previous[m];
    if (p != kNoIndex && (max_count <= 1 || !SameShape(moves, fusion, buffers, p, m))) p = kNoIndex;
  }
  JoinWholeBundles(moves, previous);
  return Merger(moves, order, fusion).Merge(std::move(previous), max_count);
}

}  // namespace xccl::lowering
