// The dual program has a price for each orbit (what a byte on one of its links costs, scaled so that Σ price
// × bandwidth = 1) and a value for each root; each tree says that its root's value is at most what the tree
// costs. A round prices the links, grows one cheap tree a root and adds those that cut the current solution
// off. The trees' cost tells how far there is to go. Trees grow as Prim's do, over whole paths between GPUs:
// from every GPU that has the data at once, cheapest first, then soonest; that is the cheapest where both
// directions of cables cost the same, and near it elsewhere.
#include "synth/fractional_packing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

#include "ir/lp.h"

namespace xccl {
namespace {

constexpr double kTie = 1e-9;  // relative: costs this close are equal

class TreeGrower {
 public:
  explicit TreeGrower(const PackingProblem& problem)
      : topology_(*problem.topology),
        label_(static_cast<size_t>(topology_.num_nodes())),
        place_(label_.size()),
        member_(label_.size()),
        num_members_(static_cast<int32_t>(problem.members.size())) {
    for (const Rank r : problem.members) member_[topology_.NodeOf(r).index()] = true;
  }

  struct Tree {
    double cost = 0;
    int64_t latency_ps = 0;
    std::vector<PackedArc> arcs;
  };

  // Links of the arcs are appended to `links`. cost: by link; s_per_ps: cost of a picosecond from the root.
  Tree Grow(Rank root, std::span<const double> cost, double s_per_ps, std::vector<LinkId>& links) {
    cost_ = cost;
    s_per_ps_ = s_per_ps;
    std::fill(label_.begin(), label_.end(), Label{});
    std::fill(place_.begin(), place_.end(), Place{});
    heap_.clear();
    Tree tree;
    int32_t missing = num_members_ - 1;
    Join(topology_.NodeOf(root), 0, 0);
    while (missing > 0 && !heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const Entry entry = heap_.back();
      heap_.pop_back();
      const Label label = label_[entry.node.index()];
      if (entry.key != label.key || entry.latency_ps != label.latency_ps) continue;
      if (!member_[entry.node.index()]) {
        Relax(entry.node, label.key, label.latency_ps);
      } else if (!place_[entry.node.index()].in) {
        Attach(entry.node, tree, links);
        --missing;
      }
    }
    return tree;
  }

 private:
  // The cheapest way to a node from any GPU of the tree: key = what the links cost + s_per_ps × latency.
  struct Label {
    double key = std::numeric_limits<double>::infinity();
    int64_t latency_ps = 0;  // from the root
    LinkId via;
  };
  struct Place {
    bool in = false;
    int32_t depth = 0;
    int64_t latency_ps = 0;
  };
  struct Entry {
    double key;
    int64_t latency_ps;
    NodeId node;
    bool operator>(const Entry& other) const {
      return std::tie(key, latency_ps, node) > std::tie(other.key, other.latency_ps, other.node);
    }
  };

  void Join(NodeId gpu, int64_t latency_ps, int32_t depth) {
    place_[gpu.index()] = {true, depth, latency_ps};
    Relax(gpu, s_per_ps_ * static_cast<double>(latency_ps), latency_ps);
  }

  void Relax(NodeId from, double key_from, int64_t latency_ps) {
    for (const LinkId l : topology_.Out(from)) {
      const Link& link = topology_.link(l);
      if (place_[link.to.index()].in) continue;
      const int64_t hop_ps = link.latency_ps + link.overhead_ps;
      const int64_t latency_to = latency_ps + hop_ps;
      const double key = key_from + cost_[l.index()] + s_per_ps_ * static_cast<double>(hop_ps);
      Label& label = label_[link.to.index()];
      const double tie = kTie * key;
      if (key > label.key + tie) continue;
      if (key >= label.key - tie && latency_to >= label.latency_ps) continue;
      label = {key, latency_to, l};
      heap_.push_back({key, latency_to, link.to});
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
  }

  // Adds the way to `node` from the tree: one arc, or one to each GPU on the way, which joins as well. A
  // label on the way may have become better since: the way then starts where that one does.
  void Attach(NodeId node, Tree& tree, std::vector<LinkId>& links) {
    way_.clear();
    for (NodeId at = node; !place_[at.index()].in; at = topology_.link(way_.back()).from)
      way_.push_back(label_[at.index()].via);
    NodeId from = topology_.link(way_.back()).from;
    PackedArc arc;
    int64_t latency_ps = place_[from.index()].latency_ps;
    arc.first_link = static_cast<int32_t>(links.size());
    for (size_t i = way_.size(); i-- > 0;) {
      const Link& link = topology_.link(way_[i]);
      links.push_back(way_[i]);
      tree.cost += cost_[way_[i].index()];
      latency_ps += link.latency_ps + link.overhead_ps;
      if (!topology_.IsGpu(link.to)) continue;
      arc.num_links = static_cast<int32_t>(links.size()) - arc.first_link;
      arc.from = *topology_.RankOf(from);
      arc.to = *topology_.RankOf(link.to);
      arc.depth = place_[from.index()].depth + 1;
      tree.arcs.push_back(arc);
      tree.latency_ps = std::max(tree.latency_ps, latency_ps);
      Join(link.to, latency_ps, arc.depth);
      from = link.to;
      arc.first_link = static_cast<int32_t>(links.size());
    }
  }

  const Topology& topology_;
  std::span<const double> cost_;
  double s_per_ps_ = 0;
  std::vector<Label> label_;
  std::vector<Place> place_;
  std::vector<bool> member_;  // by node
  int32_t num_members_;
  std::vector<Entry> heap_;
  std::vector<LinkId> way_;
};

class Packing {
 public:
  explicit Packing(const PackingProblem& problem)
      : problem_(problem),
        topology_(*problem.topology),
        orbits_(problem.share.size()),
        roots_(problem.roots.size()),
        grower_(problem),
        capacity_(orbits_, std::numeric_limits<double>::infinity()),
        link_cost_(static_cast<size_t>(topology_.num_links())) {
    for (int32_t l = 0; l < topology_.num_links(); ++l) {
      double& capacity = capacity_[problem.orbit[l]];
      capacity =
          std::min(capacity, static_cast<double>(topology_.link(LinkId(l)).bandwidth_bytes_per_s) * kGiga);
    }
  }

  FractionalPacking Run() {
    std::vector<double> costs(orbits_ + roots_, 0.0);
    std::copy(problem_.demand.begin(), problem_.demand.end(), costs.begin() + static_cast<int64_t>(orbits_));
    LinearProgram program(costs);
    std::vector<std::pair<int32_t, double>> terms;
    for (size_t o = 0; o < orbits_; ++o) terms.emplace_back(static_cast<int32_t>(o), capacity_[o]);
    program.AddRow(terms, 1, 1);

    std::vector<double> prices(orbits_), center, optimum;
    for (size_t o = 0; o < orbits_; ++o) prices[o] = 1 / (static_cast<double>(orbits_) * capacity_[o]);
    center = prices;
    double best_value = 0, load = std::numeric_limits<double>::infinity();
    FractionalPacking packing;
    for (bool smoothed = false; packing.rounds < problem_.max_rounds;) {
      ++packing.rounds;
      const Priced priced = AddTrees(prices, optimum, program);
      if (!priced.cuts && !smoothed) break;  // no tree is cheaper than those that there are
      if (priced.value > best_value) {
        best_value = priced.value;
        center = prices;
      }
      if (priced.cuts && !program.Solve(kSimplexIterations)) return {};
      load = program.Objective();
      const double known = problem_.known_bound_s_per_byte / kGiga;
      if (load <= (known > 0 ? known : best_value) * (1 + problem_.gap)) break;
      optimum.assign(program.Values().begin(), program.Values().end());
      smoothed = priced.cuts;
      const double pull = smoothed ? kSmoothing : 0;
      for (size_t o = 0; o < orbits_; ++o)
        prices[o] = pull * center[o] + (1 - pull) * std::max(0.0, optimum[o]);
    }
    packing.s_per_byte = load * kGiga;
    TakeTrees(program.RowPrices(), packing);
    return packing;
  }

 private:
  static constexpr double kGiga = 1e-9;      // loads are in seconds a gigabyte: numbers near one
  static constexpr double kSmoothing = 0.5;  // of the prices with the best bound so far
  static constexpr double kLeast = 1e-4;     // trees of less weight are left out
  static constexpr int32_t kSimplexIterations = 100'000;

  struct Priced {
    double value = 0;   // Σ demand × cost, which no packing undercuts where trees are cheapest
    bool cuts = false;  // does any tree cost less than its root's value?
  };

  // One tree a root at these prices. `optimum`: prices and values of the last solution, or empty.
  Priced AddTrees(std::span<const double> prices, std::span<const double> optimum, LinearProgram& program) {
    for (size_t l = 0; l < link_cost_.size(); ++l) {
      const auto o = static_cast<size_t>(problem_.orbit[l]);
      link_cost_[l] = prices[o] * problem_.share[o];
    }
    Priced priced;
    for (size_t i = 0; i < roots_; ++i) {
      TreeGrower::Tree tree = grower_.Grow(problem_.roots[i], link_cost_, problem_.s_per_ps / kGiga, links_);
      priced.value += problem_.demand[i] * tree.cost;
      priced.cuts |= AddRow(i, tree, optimum, program);
      trees_.push_back({static_cast<int32_t>(i), 0, std::move(tree.arcs), tree.latency_ps});
    }
    return priced;
  }

  // Root i's value is at most what the tree costs. True: the last solution says more.
  bool AddRow(size_t i, const TreeGrower::Tree& tree, std::span<const double> optimum,
              LinearProgram& program) {
    uses_.assign(orbits_, 0.0);
    for (const PackedArc& arc : tree.arcs)
      for (int32_t k = 0; k < arc.num_links; ++k) {
        const auto o =
            static_cast<size_t>(problem_.orbit[links_[static_cast<size_t>(arc.first_link + k)].index()]);
        uses_[o] += problem_.share[o];
      }
    terms_.assign(1, {static_cast<int32_t>(orbits_ + i), 1.0});
    double cost = 0;
    for (size_t o = 0; o < orbits_; ++o) {
      if (uses_[o] == 0) continue;
      terms_.emplace_back(static_cast<int32_t>(o), -uses_[o]);
      if (!optimum.empty()) cost += uses_[o] * optimum[o];
    }
    program.AddRow(terms_, -LinearProgram::kInfinity, 0);
    return optimum.empty() || cost < optimum[orbits_ + i] * (1 - kTie);
  }

  void TakeTrees(std::span<const double> row_prices, FractionalPacking& packing) {
    std::vector<double> total(roots_);
    for (size_t t = 0; t < trees_.size(); ++t) {
      FractionalTree& tree = trees_[t];
      tree.weight = std::abs(row_prices[t + 1]) / problem_.demand[static_cast<size_t>(tree.root)];
      if (tree.weight < kLeast) continue;
      total[static_cast<size_t>(tree.root)] += tree.weight;
      packing.trees.push_back(std::move(tree));
    }
    for (FractionalTree& tree : packing.trees) tree.weight /= total[static_cast<size_t>(tree.root)];
    packing.links = std::move(links_);
  }

  const PackingProblem& problem_;
  const Topology& topology_;
  size_t orbits_, roots_;
  TreeGrower grower_;
  std::vector<double> capacity_;  // by orbit, GB/s
  std::vector<double> link_cost_;
  std::vector<double> uses_;                       // by orbit, of one tree
  std::vector<std::pair<int32_t, double>> terms_;  // of one row
  std::vector<LinkId> links_;
  std::vector<FractionalTree> trees_;  // one a row after the first, in order
};

}  // namespace

namespace {

constexpr int64_t kFine = 1 << 20;  // parts of a weight that is no simple fraction
constexpr int64_t kSimple = 128;    // largest denominator of a simple one
constexpr double kSimpleError = 1e-7;

// The least denominator that makes all the weights whole.
int64_t Denominator(const FractionalPacking& packing) {
  for (int64_t d = 1; d <= kSimple; ++d) {
    const bool whole =
        std::all_of(packing.trees.begin(), packing.trees.end(), [d](const FractionalTree& tree) {
          const double times = tree.weight * static_cast<double>(d);
          return std::abs(times - std::round(times)) < kSimpleError * static_cast<double>(d);
        });
    if (whole) return d;
  }
  return kFine;
}

// Sum `total` and each at most one away from its share: the largest remainders are rounded up.
std::vector<int64_t> Apportion(std::span<const double> shares, int64_t total) {
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

PackedTrees WholeTrees(const FractionalPacking& packing, std::span<const Rank> roots,
                       std::span<const PartId> part_of) {
  PackedTrees made;
  const int64_t total = Denominator(packing);
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

int32_t FractionalPacking::Depth() const {
  int32_t depth = 0;
  for (const FractionalTree& tree : trees)
    for (const PackedArc& arc : tree.arcs) depth = std::max(depth, arc.depth);
  return depth;
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
