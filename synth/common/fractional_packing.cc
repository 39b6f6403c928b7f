// The linear program that is solved is the dual. It has a price for each orbit and a value for each root. A
// price is the cost of a byte on one of the orbit's links, scaled so that Σ price × bandwidth = 1. Each tree
// is a row: the root's value is at most the tree's cost. The price of a tree's row is the tree's weight.
// Pairs of trees share one value.
// 1. Price the links, and grow one cheap tree for each root.
// 2. Add a row for each tree that costs less than its root's value in the last solution.
// 3. Solve the program. Stop if the load is within `gap` of the known bound or, if none is known, of the
//    value Σ demand × tree cost. The value is a lower bound if the trees are the cheapest.
// 4. Set new prices: the average of the solution's prices and the best bound's prices. Go on with step 1.
// 5. If averaged prices add no tree, try the solution's prices. If the solution's prices add no tree either,
//    the packing is the best for cheap trees. With `exact`, go on with the cheapest trees.
#include "synth/common/fractional_packing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/graph/lp.h"
#include "base/status.h"
#include "base/units.h"
#include "synth/common/cheapest_tree.h"
#include "synth/common/cost_model.h"

namespace xccl {
namespace {

// Converts to gigabytes, so that the linear program's numbers are near 1.
constexpr double kGiga = 1e-9;
// The weight of the best bound's prices in the average of prices (Wentges 1997).
constexpr double kSmoothing = 0.5;
// The least weight of a tree; for pairs, kLeast ÷ the number of roots. Lighter trees are left out, because
// each tree costs a chunk.
constexpr double kLeast = 1e-4;
// The most pairs of trees that a round adds, the cheapest first. All pairs share one value, so more pairs
// would only make the program larger.
constexpr int32_t kMostPairs = 6;
// The largest denominator of a simple fraction. Rates are usually ratios of small numbers of links.
constexpr int64_t kMostSimple = 128;

class Packing {
 public:
  explicit Packing(const PackingProblem& problem)
      : problem_(problem),
        topology_(*problem.topology),
        orbits_(problem.share.size()),
        roots_(problem.roots.size()),
        wait_(problem.wait_s_per_ps / kGiga),
        down_(*problem.topology, problem.members,
              problem.reversed != nullptr ? Branching::kMulticast : Branching::kNone),
        capacity_(orbits_, std::numeric_limits<double>::infinity()),
        link_cost_(static_cast<size_t>(topology_.num_links())) {
    if (problem.reversed != nullptr) up_.emplace(*problem.reversed, problem.members, Branching::kReduce);
    if (problem.blocking_weight > 0) {
      blocked_.emplace(topology_, problem.direction, problem.blocking_weight);
      cheapest_.emplace(topology_, problem.members, *blocked_);
      if (problem.reversed != nullptr) {
        blocked_up_.emplace(*problem.reversed, Direction::kBackwards, problem.blocking_weight);
        cheapest_up_.emplace(*problem.reversed, problem.members, *blocked_up_);
      }
    }
    for (int32_t l = 0; l < topology_.num_links(); ++l) {
      double& capacity = capacity_[problem.orbit[l]];
      capacity =
          std::min(capacity, static_cast<double>(topology_.link(LinkId(l)).bandwidth_bytes_per_s) * kGiga);
    }
  }

  FractionalPacking Run() {
    std::vector<double> costs(orbits_, 0.0);
    if (up_) {
      costs.push_back(1.0);
    } else {
      most_demand_ = *std::max_element(problem_.demand.begin(), problem_.demand.end());
      costs.insert(costs.end(), roots_, most_demand_);
    }
    LinearProgram program(costs, LinearProgramForm::kTurned);
    std::vector<std::pair<int32_t, double>> terms;
    for (size_t o = 0; o < orbits_; ++o) terms.emplace_back(static_cast<int32_t>(o), capacity_[o]);
    program.AddRow(terms, 1, 1);

    std::vector<double> prices(orbits_), center, optimum;
    for (size_t o = 0; o < orbits_; ++o) prices[o] = 1 / (static_cast<double>(orbits_) * capacity_[o]);
    center = prices;
    double best_value = 0, load = std::numeric_limits<double>::infinity();
    FractionalPacking packing;
    if (problem_.start != nullptr) AddKnown(*problem_.start, program);
    for (bool smoothed = false; packing.rounds < problem_.max_rounds;) {
      ++packing.rounds;
      const Priced priced = AddTrees(prices, optimum, program);
      if (!priced.cuts && !smoothed) {  // no new tree is cheaper than the trees of the program
        if (!problem_.exact || cheapest_) break;
        cheapest_.emplace(topology_, problem_.members, BlockedLinks(topology_, Direction::kForwards, 0));
        continue;
      }
      if (priced.value > best_value) {
        best_value = priced.value;
        center = prices;
      }
      if (priced.cuts && !program.Solve()) return {};
      load = program.Objective();
      const double known = problem_.known_bound_s_per_byte / kGiga;
      // With wait_ > 0, growing does not minimize a tree's whole cost, so best_value is no bound.
      if (wait_ == 0 && load <= (known > 0 ? known : best_value) * (1 + problem_.gap)) break;
      if (problem_.stopped && problem_.stopped()) break;
      optimum.assign(program.Values().begin(), program.Values().end());
      if (!blocked_ && !up_) DropIdle(program);
      smoothed = priced.cuts;
      const double pull = smoothed ? kSmoothing : 0;
      for (size_t o = 0; o < orbits_; ++o)
        prices[o] = pull * center[o] + (1 - pull) * std::max(0.0, optimum[o]);
    }
    TakeTrees(program.RowPrices(), packing);
    packing.s_per_byte = (wait_ > 0 || blocked_ ? LoadOf(packing) : load) * kGiga;
    return packing;
  }

 private:
  struct Priced {
    // Σ demand × tree cost; for pairs, the cost of the cheapest pair. If the trees are the cheapest, this
    // value is a lower bound on the load of every packing.
    double value = 0;
    bool cuts = false;  // does any tree cost less than its root's value in the last solution?
  };
  struct Grown {
    FractionalTree tree;
    std::vector<double> uses = {};  // by orbit: the tree's uses × share
    double cost = 0;
  };

  // Grows one tree for each root at these prices. Adds the trees that cost less than their root's value in
  // the last solution, but at most kMostPairs pairs. `optimum` holds the prices and values of the last
  // solution; it is empty in the first round.
  Priced AddTrees(std::span<const double> prices, std::span<const double> optimum, LinearProgram& program) {
    for (size_t l = 0; l < link_cost_.size(); ++l) {
      const auto o = static_cast<size_t>(problem_.orbit[l]);
      link_cost_[l] = prices[o] * problem_.share[o];
    }
    const double s_per_ps = problem_.s_per_ps / kGiga;
    if (cheapest_) cheapest_->SetPrices(link_cost_, s_per_ps);
    if (cheapest_up_) cheapest_up_->SetPrices(link_cost_, s_per_ps);
    Priced priced;
    if (up_) priced.value = std::numeric_limits<double>::infinity();
    std::vector<Grown> all;
    for (size_t i = 0; i < roots_; ++i) {
      GrownTree tree = cheapest_ ? cheapest_->Grow(problem_.roots[i], links_)
                                 : down_.Grow(problem_.roots[i], link_cost_, s_per_ps, links_);
      Grown& grown = all.emplace_back();
      FractionalTree& added = grown.tree;
      added.root = static_cast<int32_t>(i);
      added.arcs = std::move(tree.arcs);
      added.latency_ps = wait_ > 0 ? LatencyOf(added.arcs) : tree.latency_ps;
      if (up_) {
        GrownTree up = cheapest_up_ ? cheapest_up_->Grow(problem_.roots[i], links_)
                                    : up_->Grow(problem_.roots[i], link_cost_, s_per_ps, links_);
        added.up = std::move(up.arcs);
        added.latency_ps += wait_ > 0 ? LatencyOf(added.up) : up.latency_ps;
      }
      CountUses(grown);
      grown.cost =
          std::inner_product(grown.uses.begin(), grown.uses.end(), prices.begin(), 0.0) + WaitOf(added);
      priced.value =
          up_ ? std::min(priced.value, grown.cost) : priced.value + problem_.demand[i] * grown.cost;
    }
    if (up_) std::ranges::stable_sort(all, {}, &Grown::cost);
    int32_t left = up_ ? kMostPairs : static_cast<int32_t>(roots_);
    for (Grown& grown : all) {
      if (left == 0) break;
      if (!AddRow(grown, optimum, program)) continue;
      priced.cuts = true;
      trees_.push_back(std::move(grown.tree));
      --left;
    }
    return priced;
  }

  // Adds a row for each tree of another packing, with the tree's cost in this problem. Requires that the
  // program has no tree yet.
  void AddKnown(const FractionalPacking& packing, LinearProgram& program) {
    links_ = packing.links;
    for (const FractionalTree& tree : packing.trees) {
      Grown known{.tree = tree};
      if (wait_ > 0) known.tree.latency_ps = LatencyOf(tree.arcs) + LatencyOf(tree.up);
      CountUses(known);
      AddRow(known, {}, program);
      trees_.push_back(std::move(known.tree));
    }
  }

  // Returns the variable of a root's value. Values are scaled to the largest demand, so that the prices of
  // all rows have similar magnitude.
  size_t ValueOf(int32_t root) const { return orbits_ + (up_ ? 0 : static_cast<size_t>(root)); }
  double ShareOfMost(int32_t root) const {
    return up_ ? 1 : problem_.demand[static_cast<size_t>(root)] / most_demand_;
  }

  // Returns the time until the farthest rank has a piece. Every rank sends the piece to one child after
  // another.
  int64_t LatencyOf(std::span<const PackedArc> arcs) {
    arrival_ps_.assign(static_cast<size_t>(topology_.num_ranks()), 0);
    int64_t last_ps = 0;
    for (const PackedArc& arc : arcs) {
      int64_t way_ps = 0;
      for (int32_t k = 0; k < arc.num_links; ++k) {
        const Link& link = topology_.link(links_[static_cast<size_t>(arc.first_link + k)]);
        way_ps += link.latency_ps + link.overhead_ps;
        if (k == 0)
          arrival_ps_[arc.from.index()] += TransferPs(problem_.piece_bytes, link.bandwidth_bytes_per_s);
      }
      const int64_t at_ps = arrival_ps_[arc.from.index()] + way_ps;
      arrival_ps_[arc.to.index()] = at_ps;
      last_ps = std::max(last_ps, at_ps);
    }
    return last_ps;
  }

  double WaitOf(const FractionalTree& tree) const { return wait_ * static_cast<double>(tree.latency_ps); }

  void CountUses(Grown& grown) {
    grown.uses.assign(orbits_, 0.0);
    CountUses(grown.tree.arcs, links_, 1, blocked_, grown.uses);
    CountUses(grown.tree.up, links_, 1, blocked_up_, grown.uses);
  }

  // Counts how often the arcs use the links of each orbit, and adds `times` × the orbit's share × this number
  // to `uses`. If `blocked` is set, each use is multiplied by the link's blocking factor.
  void CountUses(std::span<const PackedArc> arcs, std::span<const LinkId> links, double times,
                 const std::optional<BlockedLinks>& blocked, std::vector<double>& uses) {
    for (const PackedArc& arc : arcs) {
      const std::span<const LinkId> path =
          links.subspan(static_cast<size_t>(arc.first_link), static_cast<size_t>(arc.num_links));
      if (blocked) blocked->BlockingFactors(path, factors_);
      for (size_t k = 0; k < path.size(); ++k) {
        const auto o = static_cast<size_t>(problem_.orbit[path[k].index()]);
        uses[o] += times * problem_.share[o] * (blocked ? factors_[k] : 1.0);
      }
    }
  }

  // Returns the load of the busiest orbit, without blocking.
  double LoadOf(const FractionalPacking& packing) {
    std::vector<double> uses(orbits_, 0.0);
    for (const FractionalTree& tree : packing.trees) {
      const double weight = tree.weight * (up_ ? 1 : problem_.demand[static_cast<size_t>(tree.root)]);
      CountUses(tree.arcs, packing.links, weight, std::nullopt, uses);
      CountUses(tree.up, packing.links, weight, std::nullopt, uses);
    }
    double load = 0;
    for (size_t o = 0; o < orbits_; ++o) load = std::max(load, uses[o] / capacity_[o]);
    return load;
  }

  // Adds the row "the root's value <= the tree's cost". If the last solution satisfies the row, adds nothing
  // and returns false.
  bool AddRow(const Grown& grown, std::span<const double> optimum, LinearProgram& program) {
    const FractionalTree& tree = grown.tree;
    const size_t value = ValueOf(tree.root);
    const double share = ShareOfMost(tree.root);
    terms_.assign(1, {static_cast<int32_t>(value), 1.0});
    double cost = share * WaitOf(tree);
    for (size_t o = 0; o < orbits_; ++o) {
      if (grown.uses[o] == 0) continue;
      terms_.emplace_back(static_cast<int32_t>(o), -share * grown.uses[o]);
      if (!optimum.empty()) cost += share * grown.uses[o] * optimum[o];
    }
    if (!optimum.empty() && cost >= optimum[value] * (1 - kRounding)) return false;
    program.AddRow(terms_, -LinearProgram::kInfinity, share * WaitOf(tree));
    return true;
  }

  // Drops trees if there are more than twice as many trees as variables, so that the program stays small.
  // Keeps as many trees as variables: trees with weight first, then trees with the least slack. Not called
  // for pairs or with blocking, because trees are few there.
  void DropIdle(LinearProgram& program) {
    const size_t most = orbits_ + roots_;
    if (trees_.size() <= 2 * most) return;
    const std::span<const double> slacks = program.RowSlacks(), weights = program.RowPrices();
    std::vector<int32_t> rows(trees_.size());  // row 0 scales the prices and stays
    std::iota(rows.begin(), rows.end(), 1);
    std::ranges::stable_sort(rows, {}, [&](int32_t row) {
      return std::pair(weights[static_cast<size_t>(row)] == 0, slacks[static_cast<size_t>(row)]);
    });
    rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(most));
    std::ranges::sort(rows);
    program.DropRows(rows);
    size_t next = 0;
    std::vector<FractionalTree> kept;
    for (size_t t = 0; t < trees_.size(); ++t) {
      if (next < rows.size() && static_cast<size_t>(rows[next]) == t + 1)
        ++next;
      else
        kept.push_back(std::move(trees_[t]));
    }
    trees_ = std::move(kept);
  }

  void TakeTrees(std::span<const double> row_prices, FractionalPacking& packing) {
    const size_t kinds = up_ ? 1 : roots_;
    std::vector<double> total(kinds, 0.0);
    std::vector<FractionalTree*> heaviest(kinds, nullptr);
    const auto kind_of = [&](const FractionalTree& tree) { return up_ ? 0 : static_cast<size_t>(tree.root); };
    const double least = up_ ? kLeast / static_cast<double>(roots_) : kLeast;
    trees_.resize(row_prices.size() - 1);  // one tree for each row of the program after the first
    for (size_t t = 0; t < trees_.size(); ++t) {
      FractionalTree& tree = trees_[t];
      tree.weight = std::abs(row_prices[t + 1]);
      if (!up_) tree.weight /= most_demand_;
      FractionalTree*& most = heaviest[kind_of(tree)];
      if (most == nullptr || tree.weight > most->weight) most = &tree;
      if (tree.weight >= least) total[kind_of(tree)] += tree.weight;
    }
    // If solver rounding leaves a root without weight, its heaviest tree carries everything.
    for (size_t k = 0; k < kinds; ++k)
      if (total[k] == 0) total[k] = heaviest[k]->weight = 1;
    for (FractionalTree& tree : trees_) {
      if (tree.weight < least) continue;
      tree.weight /= total[kind_of(tree)];
      packing.trees.push_back(std::move(tree));
    }
    packing.links = std::move(links_);
  }

  const PackingProblem& problem_;
  const Topology& topology_;
  size_t orbits_, roots_;
  double wait_;  // wait_s_per_ps in seconds per gigabyte and picosecond
  double most_demand_ = 1;
  TreeGrower down_;
  std::optional<TreeGrower> up_;           // grows the up-trees of pairs
  std::optional<CheapestTrees> cheapest_;  // for exact packings and for blocking
  std::optional<CheapestTrees> cheapest_up_;
  std::optional<BlockedLinks> blocked_, blocked_up_;
  std::vector<double> factors_;
  std::vector<int64_t> arrival_ps_;  // by rank: the time at which it can send next
  std::vector<double> capacity_;     // by orbit: bandwidth of its slowest link, GB/s
  std::vector<double> link_cost_;
  std::vector<std::pair<int32_t, double>> terms_;  // the terms of one row
  std::vector<LinkId> links_;
  std::vector<FractionalTree> trees_;  // one for each row after the first, in order
};

// Returns the least denominator, at most kMostSimple, of fractions that equal all shares up to an error of
// 0.1 ÷ kWeightUnits. Returns kWeightUnits if there is no such denominator.
int64_t Denominator(std::span<const double> shares) {
  for (int64_t d = 1; d <= kMostSimple; ++d) {
    const bool whole = std::all_of(shares.begin(), shares.end(), [d](double share) {
      const double times = share * static_cast<double>(d);
      return std::abs(times - std::round(times)) * kWeightUnits < 0.1 * static_cast<double>(d);
    });
    if (whole) return d;
  }
  return kWeightUnits;
}

// Returns whole weights that sum to `total`, in proportion to the shares. Each weight is rounded down or up;
// weights with the largest remainders are rounded up.
std::vector<int64_t> Apportion(std::span<const double> shares, int64_t total) {
  XCCL_CHECK(!shares.empty());
  std::vector<int64_t> whole(shares.size());
  std::vector<size_t> order(shares.size());
  int64_t left = total;
  for (size_t i = 0; i < shares.size(); ++i) {
    order[i] = i;
    whole[i] = static_cast<int64_t>(std::floor(shares[i] * static_cast<double>(total)));
    left -= whole[i];
  }
  const auto rest = [&](size_t i) {
    return shares[i] * static_cast<double>(total) - static_cast<double>(whole[i]);
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rest(a) > rest(b); });
  for (size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++whole[order[i]];
  return whole;
}

}  // namespace

PackedTrees RoundToPackedTrees(const FractionalPacking& packing, std::span<const Rank> roots,
                               std::span<const PartId> part_of) {
  PackedTrees made;
  std::vector<double> all;
  for (const FractionalTree& tree : packing.trees) all.push_back(tree.weight);
  const int64_t total = Denominator(all);
  for (size_t root = 0; root < roots.size(); ++root) {
    std::vector<const FractionalTree*> trees;
    std::vector<double> shares;
    for (const FractionalTree& tree : packing.trees) {
      if (static_cast<size_t>(tree.root) != root) continue;
      trees.push_back(&tree);
      shares.push_back(tree.weight);
    }
    const std::vector<int64_t> weights = Apportion(shares, total);
    for (size_t t = 0; t < trees.size(); ++t) {
      if (weights[t] <= 0) continue;
      PackedTree& tree = made.trees.emplace_back();
      tree.part = part_of[root];
      tree.root = roots[root];
      tree.weight = weights[t];
      for (const PackedArc& arc : trees[t]->arcs)
        tree.arcs.push_back({arc.from, arc.to, made.paths.Intern(packing.Links(arc)), arc.depth});
    }
  }
  return made;
}

std::vector<int64_t> RoundToIntegerWeights(std::span<const double> shares) {
  return Apportion(shares, Denominator(shares));
}

PackingProblem PlainPacking(const Topology& topology, std::vector<Rank> members) {
  PackingProblem problem;
  problem.topology = &topology;
  problem.roots = members;
  problem.demand.assign(members.size(), 1.0);
  problem.members = std::move(members);
  problem.orbit.resize(static_cast<size_t>(topology.num_links()));
  std::iota(problem.orbit.begin(), problem.orbit.end(), 0);
  problem.share.assign(problem.orbit.size(), 1.0);
  return problem;
}

FractionalPacking PackTrees(const PackingProblem& problem) { return Packing(problem).Run(); }

}  // namespace xccl
