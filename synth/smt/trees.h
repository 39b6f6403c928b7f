// Finds the cheapest tree of sends that brings a chunk from its holders to all its needers within a number of
// steps. A send over an edge in a step has a price. The search is a dynamic program over sets of needers,
// after Dreyfus and Wagner (1972), on the machine unrolled in time.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "synth/smt/instance.h"
#include "synth/smt/prices.h"

namespace xccl::smt {

class TreeSearch {
 public:
  using Cost = int64_t;
  static constexpr Cost kInfinite = std::numeric_limits<Cost>::max() / 4;

  TreeSearch(const Machine& machine, int32_t steps) : machine_(machine), steps_(steps) {}

  // Returns the cost of the cheapest tree; kInfinite if there is no tree. `price` is by step and edge.
  // Requires: at least one holder, at most 20 needers, and no needer is a holder.
  Cost Search(const EdgePrices& price, const std::vector<int32_t>& holders,
              const std::vector<int32_t>& needers) {
    price_ = &price;
    start_.clear();
    for (const int32_t r : holders) start_.push_back({.rank = r});
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
      for (int32_t r = 0; r < machine_.ranks; ++r) best_[s][r] = Joined(BranchesOf(s, r)).back();
    return Joined(start_).back()[all_];
  }

  // Returns one of the cheapest trees. Requires that the last Search() found a tree and that its prices still
  // exist.
  Pattern Tree() const {
    Pattern sends;
    Unfold(start_, all_, sends);
    return sends;
  }

 private:
  // A rank that has the chunk when `step` begins, and the edge over which the chunk came in the step before.
  struct Branch {
    int32_t rank = 0, step = 0;
    int32_t edge = -1;  // -1: the chunk was there already
    Cost price = 0;
  };
  // Returns where the chunk may be a step later: at `rank`, and at every neighbour by the cheapest edge to
  // the neighbour. Edges from one rank to one neighbour stand together in machine_.out.
  std::vector<Branch> BranchesOf(int32_t step, int32_t rank) const {
    std::vector<Branch> branches = {{.rank = rank, .step = step + 1}};
    for (int32_t e : machine_.out[rank]) {
      const Branch branch = {machine_.edges[e].to, step + 1, e, (*price_)[step][e]};
      if (branch.price >= kInfinite) continue;
      if (branches.back().edge < 0 || branches.back().rank != branch.rank)
        branches.push_back(branch);
      else if (branch.price < branches.back().price)
        branches.back() = branch;
    }
    return branches;
  }
  // Returns a list of tables. Table i gives, for each set of needers, the least cost to serve the set by the
  // first i + 1 branches. Each branch serves a part of the set: into[T] = min(into[T], into[T without P] +
  // price + from[P]) for all parts P of T.
  std::vector<std::vector<Cost>> Joined(const std::vector<Branch>& branches) const {
    std::vector<std::vector<Cost>> stages = {From(branches[0])};
    for (size_t i = 1; i < branches.size(); ++i) {
      std::vector<Cost> into = stages.back();
      const std::vector<Cost>& from = From(branches[i]);
      const Cost price = branches[i].price;
      for (uint32_t set = all_; set > 0; --set) {
        Cost least = into[set];
        for (uint32_t part = set; part > 0; part = (part - 1) & set)
          least = std::min(least, into[set & ~part] + price + from[part]);
        into[set] = least;
      }
      stages.push_back(std::move(into));
    }
    return stages;
  }
  const std::vector<Cost>& From(const Branch& branch) const { return best_[branch.step][branch.rank]; }

  // Appends the sends by which the branches together serve the set.
  void Unfold(const std::vector<Branch>& branches, uint32_t set, Pattern& sends) const {
    const std::vector<std::vector<Cost>> stages = Joined(branches);
    for (size_t i = branches.size(); i-- > 0 && set != 0;) {
      const Branch& branch = branches[i];
      uint32_t part = set;  // needers that this branch serves; the first branch serves the rest
      if (i > 0) {
        if (stages[i][set] == stages[i - 1][set]) continue;
        while (stages[i - 1][set & ~part] + branch.price + From(branch)[part] != stages[i][set])
          part = (part - 1) & set;
      }
      set &= ~part;
      if (branch.edge >= 0) sends.push_back({.edge = branch.edge, .step = branch.step - 1});
      const uint32_t beyond = part & ~bit_[branch.rank];
      if (beyond != 0) Unfold(BranchesOf(branch.step, branch.rank), beyond, sends);
    }
  }

  const Machine& machine_;
  const int32_t steps_;
  const EdgePrices* price_ = nullptr;
  std::vector<Branch> start_;  // the holders
  std::vector<uint32_t> bit_;  // by rank: the bit of a needer; 0 for other ranks
  uint32_t all_ = 0;
  std::vector<std::vector<std::vector<Cost>>> best_;  // [step][rank][needers still to be served]
};

}  // namespace xccl::smt
