// The cheapest tree in time: sends by which a chunk gets from its holders to all its needers within a number
// of steps, where a send over an edge in a step has a price. A dynamic program over sets of needers, after
// Dreyfus and Wagner (1972), on the machine unrolled in time.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/status.h"
#include "synth/smt/instance.h"
#include "synth/smt/prices.h"

namespace xccl::smt {

// Edges of one pair of ranks count as the cheapest of them.
class TreeSearch {
 public:
  using Cost = int64_t;
  static constexpr Cost kInfinite = std::numeric_limits<Cost>::max() / 4;

  TreeSearch(const Machine& machine, int32_t steps) : machine_(machine), steps_(steps) {}

  // price[step][edge]. Returns the cost of the cheapest tree, kInfinite where there is none. Requires: at
  // most 20 needers, none of which is a holder.
  Cost Search(const std::vector<std::vector<Cost>>& price, const std::vector<int32_t>& holders,
              const std::vector<int32_t>& needers) {
    price_ = &price;
    holders_ = &holders;
    bit_.assign(static_cast<size_t>(machine_.ranks), 0);
    for (size_t i = 0; i < needers.size(); ++i) bit_[needers[i]] = 1u << i;
    all_ = (1u << needers.size()) - 1;
    best_.assign(static_cast<size_t>(steps_) + 1,
                 std::vector<std::vector<Cost>>(static_cast<size_t>(machine_.ranks)));
    for (int32_t r = 0; r < machine_.ranks; ++r) {
      best_[steps_][r].assign(size_t{all_} + 1, kInfinite);
      best_[steps_][r][0] = best_[steps_][r][bit_[r]] = 0;
    }
    for (int32_t s = steps_ - 1; s >= 0; --s)
      for (int32_t r = 0; r < machine_.ranks; ++r) {
        best_[s][r] = best_[s + 1][r];
        for (const Hop& hop : HopsOf(s, r)) JoinOver(s, hop, best_[s][r]);
      }
    start_.assign(1, best_[0][holders[0]]);
    for (size_t h = 1; h < holders.size(); ++h) {
      start_.push_back(start_.back());
      Join(best_[0][holders[h]], 0, start_.back());
    }
    return start_.back()[all_];
  }

  // The tree itself, one of the cheapest. Requires: the last Search found one.
  Pattern Tree() const {
    Pattern sends;
    uint32_t left = all_;
    for (size_t h = holders_->size(); h-- > 0;) {
      const std::vector<Cost>& own = best_[0][(*holders_)[h]];
      const uint32_t part = h == 0 ? left : PartOf(start_[h - 1], own, 0, start_[h], left);
      left &= ~part;
      Unfold(0, (*holders_)[h], part, sends);
    }
    return sends;
  }

 private:
  struct Hop {
    int32_t edge = 0, to = 0;
    Cost price = 0;
  };
  // The cheapest edge to every neighbour.
  std::vector<Hop> HopsOf(int32_t step, int32_t rank) const {
    std::vector<Hop> hops;
    for (int32_t e : machine_.out[rank]) {
      const Cost price = (*price_)[step][e];
      const int32_t to = machine_.edges[e].to;
      if (!hops.empty() && hops.back().to == to) {
        if (price < hops.back().price) hops.back() = {e, to, price};
      } else {
        hops.push_back({e, to, price});
      }
    }
    return hops;
  }
  // into[T] = min(into[T], into[T without P] + price + from[P]) for all parts P of T, each used at most once.
  void Join(const std::vector<Cost>& from, Cost price, std::vector<Cost>& into) const {
    for (uint32_t set = all_; set > 0; --set) {
      Cost least = into[set];
      for (uint32_t part = set; part > 0; part = (part - 1) & set) {
        const Cost cost = into[set & ~part] + price + from[part];
        if (cost < least) least = cost;
      }
      into[set] = least;
    }
  }
  void JoinOver(int32_t step, const Hop& hop, std::vector<Cost>& into) const {
    if (hop.price < kInfinite) Join(best_[step + 1][hop.to], hop.price, into);
  }
  // Which part of `set` was joined from `from`; 0: none.
  uint32_t PartOf(const std::vector<Cost>& before, const std::vector<Cost>& from, Cost price,
                  const std::vector<Cost>& after, uint32_t set) const {
    if (after[set] == before[set]) return 0;
    for (uint32_t part = set; part > 0; part = (part - 1) & set)
      if (before[set & ~part] + price + from[part] == after[set]) return part;
    return 0;
  }
  void Unfold(int32_t step, int32_t rank, uint32_t set, Pattern& sends) const {
    set &= ~bit_[rank];
    if (set == 0 || step == steps_) return;
    const std::vector<Hop> hops = HopsOf(step, rank);
    std::vector<std::vector<Cost>> stages = {best_[step + 1][rank]};
    for (const Hop& hop : hops) {
      stages.push_back(stages.back());
      JoinOver(step, hop, stages.back());
    }
    for (size_t i = hops.size(); i-- > 0;) {
      if (hops[i].price >= kInfinite) continue;
      const uint32_t part = PartOf(stages[i], best_[step + 1][hops[i].to], hops[i].price, stages[i + 1], set);
      if (part == 0) continue;
      sends.push_back({.edge = hops[i].edge, .step = step});
      Unfold(step + 1, hops[i].to, part, sends);
      set &= ~part;
    }
    Unfold(step + 1, rank, set, sends);
  }

  const Machine& machine_;
  const int32_t steps_;
  const std::vector<std::vector<Cost>>* price_ = nullptr;
  const std::vector<int32_t>* holders_ = nullptr;
  std::vector<uint32_t> bit_;  // of a rank that needs
  uint32_t all_ = 0;
  std::vector<std::vector<std::vector<Cost>>> best_;  // [step][rank][needers still to be served]
  std::vector<std::vector<Cost>> start_;              // after so many holders
};

}  // namespace xccl::smt
