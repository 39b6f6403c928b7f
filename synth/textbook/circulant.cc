// A broadcast in the fewest rounds (Traeff, "Optimal Broadcast Schedules in Logarithmic Time with
// Applications to Broadcast, All-Broadcast, Reduction and All-Reduction", arXiv 2407.18004). n blocks reach p
// ranks in n - 1 + q rounds, where q = ceil(log2 p). In a round each rank sends at most one block and
// receives at most one. A phase is q rounds. The graph is circulant: in round k of a phase, position r sends
// to r + skip[k] modulo p. skip[q] is p, and each skip is half of the next one, rounded up. A new block
// leaves the root in every round, until all have left. One block of each phase, the base block of a position,
// reaches the position in the same phase. In the other q - 1 rounds of a phase, the position receives the
// other q - 1 blocks of the phase before. PlaceCirculant tries numbers of blocks n and takes the fastest.
#include <algorithm>
#include <limits>
#include <memory>

#include "synth/common/bit_table.h"
#include "synth/common/cost_model.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

// The block that each position receives in each round of a phase.
class Circulant {
 public:
  // Requires: p >= 2. Time: about p log2 p.
  explicit Circulant(int32_t p) : rounds_(CeilLog2(p)), received_(static_cast<size_t>(p)) {
    skip_.assign(static_cast<size_t>(rounds_) + 1, p);
    for (int32_t k = rounds_; k-- > 0;) skip_[k] = (skip_[k + 1] + 1) / 2;
    for (int32_t r = 1; r < p; ++r) received_[r] = Search(*this, r).Received();
  }
  int32_t rounds() const { return rounds_; }
  int32_t skip(int32_t round) const { return skip_[round]; }
  // Block k leaves the root in round k of this phase. Blocks below 0 are of the phase before.
  int32_t Received(int32_t position, int32_t round) const { return received_[position][round]; }

 private:
  // Returns the base block of a position. The way from the root to the position goes by ever larger skips.
  // The number of its first skip is the base block. The loop takes off the last skip first.
  int32_t BaseBlock(int32_t position) const {
    for (int32_t k = rounds_ - 1;; --k) {
      if (position == skip_[k]) return k;
      if (skip_[k] < position) position -= skip_[k];
    }
  }

  // Finds the block that one position receives in each round. The root stands at 0 and the position at p +
  // position, because a way may go once round the circle. A way adds ever smaller skips to the root's place;
  // its smallest skip has the number of the block that the way brings. For round k the search takes the way
  // that ends farthest from the root among the ways that end between skip[k] and skip[k + 1] before the
  // position. Each block is taken once.
  class Search {
   public:
    Search(const Circulant& graph, int32_t position)
        : graph_(graph),
          base_(graph.BaseBlock(position)),
          target_(graph.skip_.back() + position),
          free_(graph.skip_.size(), true),
          before_(2 * graph.skip_.back()) {
      free_[base_] = false;
    }
    std::vector<int32_t> Received() {
      Extend(0, graph_.rounds_);
      // The skip p alone is the way of the base block, in this phase. Other blocks are of the phase before.
      for (int32_t& block : received_) block = block == graph_.rounds_ ? base_ : block - graph_.rounds_;
      return std::move(received_);
    }

   private:
    // Extends the way that ends at `reached` by the skip with number `first` or smaller ones.
    void Extend(int32_t reached, int32_t first) {
      const std::vector<int32_t>& skip = graph_.skip_;
      for (int32_t e = first; e >= 0 && Round() < graph_.rounds_; --e) {
        const int32_t next = reached + skip[e];
        if (!free_[e] || next > target_ - skip[Round()] || next >= before_) continue;
        if (next <= target_ - skip[Round() + 1]) Extend(next, e);
        if (Round() == graph_.rounds_ || reached > target_ - skip[Round() + 1]) return;
        before_ = next;
        free_[e] = false;
        received_.push_back(e);
      }
    }
    int32_t Round() const { return static_cast<int32_t>(received_.size()); }

    const Circulant& graph_;
    const int32_t base_, target_;
    std::vector<bool> free_;         // by skip: its block is not taken yet
    int32_t before_;                 // end of the last way taken; the next way ends before it
    std::vector<int32_t> received_;  // by round: the smallest skip of the way taken
  };

  const int32_t rounds_;
  std::vector<int32_t> skip_;
  std::vector<std::vector<int32_t>> received_;
};

// Calls f(round, from, to, block) for every send, round by round. The last round ends a phase, so the first
// phase may lack its first rounds and the blocks below 0. In the last phase, the last block stands for all
// blocks beyond it, and each position receives it once.
template <typename F>
void ForSends(const Circulant& graph, int32_t p, int32_t n, F f) {
  const int32_t q = graph.rounds(), left_out = (q - (n - 1 + q) % q) % q;
  BitTable has(p, n);
  for (int32_t round = left_out; round < left_out + n - 1 + q; ++round) {
    const int32_t k = round % q;
    for (int32_t to = 1; to < p; ++to) {
      const int32_t block = std::min(graph.Received(to, k) + round / q * q - left_out, n - 1);
      if (block < 0 || has.Get(to, block)) continue;
      has.Set(to, block);
      f(round - left_out, (to + p - graph.skip(k)) % p, to, block);
    }
  }
}

// The time of a message if all positions send at once and their ports are equal.
struct MessageTime {
  double latency_ps = 0, port_ps = 0, ps_per_byte = 0;
};
MessageTime Measure(const Circulant& circulant, const Positions& positions, const RankGraph& graph,
                    TimeModel model) {
  const int32_t p = positions.size(), q = circulant.rounds();
  Moves phase;
  for (int32_t k = 0; k < q; ++k)
    for (int32_t r = 0; r < p; ++r)
      phase.Add({{0, 1}, positions.rank[r], positions.rank[(r + circulant.skip(k)) % p], k});
  const Cost alone = MeasureMoves(phase, graph, 1), together = MeasureMoves(phase, graph, 1, false, model);
  return {alone.fixed_ps / q, (together.fixed_ps - alone.fixed_ps) / q, alone.ps_per_byte / q};
}

// Returns the time of a broadcast of n blocks, in which each port handles its messages in order.
double TimePs(const Circulant& graph, int32_t p, int32_t n, const MessageTime& message, int64_t size_bytes) {
  const double share_ps = message.ps_per_byte * static_cast<double>(size_bytes) / n;
  std::vector<double> out(static_cast<size_t>(p), 0), in(out);                      // when a port is free
  std::vector<double> arrived(static_cast<size_t>(p) * static_cast<size_t>(n), 0);  // by position and block
  double last = 0;
  ForSends(graph, p, n, [&](int32_t, int32_t from, int32_t to, int32_t block) {
    const auto at = [&](int32_t r) -> double& { return arrived[static_cast<size_t>(r) * n + block]; };
    const double start = std::max({out[from], in[to], at(from)});
    out[from] = in[to] = start + message.port_ps + share_ps;
    at(to) = start + message.latency_ps + share_ps;
    last = std::max(last, at(to));
  });
  return last;
}

}  // namespace

StatusOr<Recipe> PlaceCirculant(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = DomainPositions(graph, request.collective->ranks());
  const int32_t p = positions.size();
  Recipe recipe;
  if (p == 1) {
    recipe.broadcast = [](Rank, ChunkRange, Moves&) {};
    return recipe;
  }
  const auto circulant = std::make_shared<const Circulant>(p);
  recipe.broadcast = [positions, circulant](Rank root, ChunkRange all, Moves& moves) {
    const Positions from_root = StartingAt(positions, root);
    ForSends(*circulant, positions.size(), all.count,
             [&](int32_t round, int32_t from, int32_t to, int32_t block) {
               moves.Add({{all.first + block, 1}, from_root.rank[from], from_root.rank[to], round});
             });
  };
  // Tries ever more blocks, up to three times the best number so far: the time goes up and down with n.
  const MessageTime message = Measure(*circulant, positions, graph, request.model);
  double best_ps = std::numeric_limits<double>::infinity();
  const int64_t most = std::min(kMovesWorthCutting / p, request.size_bytes / kLeastPieceBytes);
  for (int32_t n = 1; n <= 3 * recipe.pieces && (n == 1 || n <= most); n += (n + 2) / 3) {
    const double time_ps = TimePs(*circulant, p, n, message, request.size_bytes);
    if (time_ps >= best_ps) continue;
    best_ps = time_ps;
    recipe.pieces = n;
  }
  recipe.cost = Cost{.fixed_ps = best_ps};
  return recipe;
}

}  // namespace xccl
