// The bound: give every link a length y >= 0. A byte that travels a distance under y uses up that amount of
// the Σ bandwidth × y that all links offer in a second. So for any y
//   T >= Σ demand × distance under y ÷ Σ bandwidth × y.
// If links have waits, Σ bandwidth × y × wait is added to the numerator. The best y attains the optimum of
// the linear program. Every y is evaluated by this formula, so the bound is valid even if the solver is
// inexact. Under a symmetry all links of an orbit have equal y, and one source stands for its orbit. The
// prices in the code are y ÷ share.
//
// The program: maximise Σ z_s with Σ bandwidth × price = 1. z_s is at most the price that the demands of
// source s pay along any one tree of paths. Each round has these steps:
// 1. Find the shortest-path tree of every source, at prices between the best so far and the program's own.
// 2. Add the trees as rows and solve the program. Its value is an upper bound for all prices.
// 3. Evaluate the bound at the program's own prices. End if bound and value meet.
// The program's dual values are the weights of the trees. The weighted trees are a flow whose load is the
// value.
#include "ir/bounds/concurrent_flow.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>

#include "base/graph/lp.h"

namespace xccl {
namespace {

// Relative difference up to which two distances count as equal, so that latency decides.
constexpr double kTie = 1e-9;
// Least weight of a tree. A tree of less weight is a rounding error of the linear program, and is dropped.
constexpr double kLeast = 1e-7;
// The share by which a round raises the price of the most crowded orbit; less for other orbits.
constexpr double kGrowth = 0.3;
// Most simplex iterations in one round.
constexpr int32_t kIterations = 20'000;

class ShortestPaths {
 public:
  explicit ShortestPaths(const FlowProblem& problem)
      : problem_(problem), topology_(*problem.topology), cost_(problem.orbit.size()) {
    const size_t nodes = static_cast<size_t>(topology_.num_nodes());
    labels_.resize(nodes);
    load_.resize(nodes);
  }

  // Returns the bound in seconds that the prices prove. Calls tree(source, labels, uses) for each source. A
  // label holds the tree's link into a node, and `uses` holds bytes × share by orbit.
  template <typename Tree>
  double Bound(const std::vector<double>& prices, Tree tree) {
    for (size_t l = 0; l < cost_.size(); ++l) {
      const auto o = static_cast<size_t>(problem_.orbit[l]);
      cost_[l] = prices[o] * problem_.share[o];
    }
    double paid = 0, capacity = 0;
    for (size_t o = 0; o < prices.size(); ++o) {
      capacity += prices[o] * problem_.capacity[o];
      if (!problem_.wait_s.empty()) paid += prices[o] * problem_.capacity[o] * problem_.wait_s[o];
    }
    const Demands& demands = problem_.demands;
    std::vector<double> uses(prices.size());
    for (size_t s = 0; s < demands.sources.size(); ++s) {
      Search(demands.sources[s]);
      std::fill(load_.begin(), load_.end(), 0);
      for (const Demands::To& to : demands.to[s]) {
        paid += to.bytes * labels_[static_cast<size_t>(to.node)].distance;
        load_[static_cast<size_t>(to.node)] += to.bytes;
      }
      std::fill(uses.begin(), uses.end(), 0);
      for (auto it = settled_.rbegin(); it != settled_.rend(); ++it) {
        const double load = load_[static_cast<size_t>(*it)];
        if (*it == demands.sources[s] || load == 0) continue;
        const LinkId via = labels_[static_cast<size_t>(*it)].via;
        const auto o = static_cast<size_t>(problem_.orbit[via.index()]);
        uses[o] += load * problem_.share[o];
        load_[topology_.link(via).from.index()] += load;
      }
      tree(s, labels_, uses);
    }
    return capacity > 0 ? paid / capacity : 0;
  }

  struct Label {
    double distance = std::numeric_limits<double>::infinity();
    int64_t latency_ps = 0;
    LinkId via;
  };

 private:
  void Search(int32_t source) {
    std::fill(labels_.begin(), labels_.end(), Label{});
    settled_.clear();
    std::vector<bool> done(labels_.size(), false);
    using Entry = std::tuple<double, int64_t, int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
    labels_[static_cast<size_t>(source)].distance = 0;
    heap.push({0, 0, source});
    while (!heap.empty()) {
      const int32_t node = std::get<2>(heap.top());
      heap.pop();
      if (done[static_cast<size_t>(node)]) continue;
      done[static_cast<size_t>(node)] = true;
      settled_.push_back(node);
      const Label from = labels_[static_cast<size_t>(node)];
      for (const LinkId l : topology_.Out(NodeId(node))) {
        const Link& link = topology_.link(l);
        if (done[link.to.index()]) continue;
        Label& to = labels_[link.to.index()];
        const double distance = from.distance + cost_[l.index()];
        const int64_t latency_ps = from.latency_ps + link.latency_ps + link.overhead_ps;
        const double tie = kTie * distance;
        if (distance > to.distance + tie) continue;
        if (distance >= to.distance - tie && latency_ps >= to.latency_ps) continue;
        to = {distance, latency_ps, l};
        heap.push({distance, latency_ps, link.to.value});
      }
    }
  }

  const FlowProblem& problem_;
  const Topology& topology_;
  std::vector<double> cost_;  // by link
  std::vector<double> load_;
  std::vector<Label> labels_;
  std::vector<int32_t> settled_;
};

// Solves the program. After one row that scales prices, its rows are trees in the order of their addition.
class CuttingPlanes {
 public:
  CuttingPlanes(const FlowProblem& problem, const FlowOptions& options)
      : options_(options),
        sources_(problem.demands.sources.size()),
        orbits_(problem.share.size()),
        shortest_(problem),
        bandwidth_(MeanBandwidth(problem)),
        bytes_(MeanBytes(problem)),
        program_(Costs(problem)) {
    std::vector<std::pair<int32_t, double>> row;
    for (size_t o = 0; o < orbits_; ++o)
      row.emplace_back(static_cast<int32_t>(o), problem.capacity[o] / bandwidth_);
    program_.AddRow(row, 1, 1);
  }

  ConcurrentFlow Run() {
    ConcurrentFlow flow;
    flow.load_s = std::numeric_limits<double>::infinity();
    std::vector<double> prices(orbits_, 1.0 / static_cast<double>(orbits_));
    const double unit = bytes_ / bandwidth_;
    for (int32_t round = 0; round < options_.rounds; ++round) {
      Query(prices, true, flow);
      if (!program_.Solve(kIterations)) {
        flow.load_s = std::numeric_limits<double>::infinity();
        return flow;
      }
      flow.load_s = program_.Objective() * unit;
      if (flow.load_s <= flow.bound_s * (1 + options_.gap)) break;
      const std::vector<double> optimum(program_.Values().begin(),
                                        program_.Values().begin() + static_cast<int64_t>(orbits_));
      for (size_t o = 0; o < orbits_; ++o) prices[o] = std::max(0.0, optimum[o]);
      Query(prices, false, flow);
      if (flow.load_s <= flow.bound_s * (1 + options_.gap) || (options_.stopped && options_.stopped())) break;
      if (round % 4 != 3)
        for (size_t o = 0; o < orbits_; ++o) prices[o] = 0.5 * prices[o] + 0.5 * best_[o];
    }
    TakeTrees(flow);
    return flow;
  }

 private:
  static double MeanBandwidth(const FlowProblem& problem) {
    double bandwidth = 0;
    for (const double capacity : problem.capacity) bandwidth += capacity;
    return bandwidth / static_cast<double>(problem.capacity.size());
  }
  static double MeanBytes(const FlowProblem& problem) {
    double bytes = 0;
    for (const auto& to : problem.demands.to)
      for (const Demands::To& each : to) bytes += each.bytes;
    return bytes / static_cast<double>(problem.demands.sources.size());
  }
  std::vector<double> Costs(const FlowProblem& problem) const {
    std::vector<double> costs(orbits_ + sources_, 0);
    for (size_t o = 0; o < problem.wait_s.size(); ++o)
      costs[o] = problem.capacity[o] / bytes_ * problem.wait_s[o];
    std::fill(costs.begin() + static_cast<int64_t>(orbits_), costs.end(), 1);
    return costs;
  }

  // Raises flow.bound_s to the bound that the prices prove. With `add`, the shortest-path trees become rows.
  void Query(const std::vector<double>& prices, bool add, ConcurrentFlow& flow) {
    const double bound = shortest_.Bound(
        prices,
        [&](size_t s, const std::vector<ShortestPaths::Label>& labels, const std::vector<double>& uses) {
          if (add) AddTree(s, labels, uses);
        });
    if (bound <= flow.bound_s) return;
    flow.bound_s = bound;
    best_ = prices;
  }

  void AddTree(size_t s, const std::vector<ShortestPaths::Label>& labels, const std::vector<double>& uses) {
    row_.assign(1, {static_cast<int32_t>(orbits_ + s), 1.0});
    for (size_t o = 0; o < orbits_; ++o)
      if (uses[o] > 0) row_.emplace_back(static_cast<int32_t>(o), -uses[o] / bytes_);
    program_.AddRow(row_, -LinearProgram::kInfinity, 0);
    FlowTree tree{.source = static_cast<int32_t>(s), .weight = 0, .into = {}};
    for (const ShortestPaths::Label& label : labels) tree.into.push_back(label.via);
    trees_.push_back(std::move(tree));
  }

  void TakeTrees(ConcurrentFlow& flow) {
    const std::span<const double> weights = program_.RowPrices();
    std::vector<double> total(sources_, 0);
    std::vector<size_t> last(sources_, 0);
    for (size_t t = 0; t < trees_.size(); ++t) {
      trees_[t].weight = weights[t + 1];  // row 0 scales the prices
      const auto source = static_cast<size_t>(trees_[t].source);
      last[source] = t;
      if (trees_[t].weight > kLeast) total[source] += trees_[t].weight;
    }
    // The linear program may ignore a source whose demands are tiny compared with other sources. Any tree is
    // good enough for that source.
    for (size_t s = 0; s < sources_; ++s)
      if (total[s] == 0) total[s] = trees_[last[s]].weight = 1;
    for (FlowTree& tree : trees_) {
      if (tree.weight <= kLeast) continue;
      tree.weight /= total[static_cast<size_t>(tree.source)];
      flow.trees.push_back(std::move(tree));
    }
  }

  const FlowOptions options_;
  const size_t sources_, orbits_;
  ShortestPaths shortest_;
  double bandwidth_, bytes_;  // means, used as units so that numbers are near one
  LinearProgram program_;
  std::vector<double> best_;
  std::vector<FlowTree> trees_;
  std::vector<std::pair<int32_t, double>> row_;
};

}  // namespace

FlowProblem FlowOf(const Topology& topology, const Demands& demands, const SymmetryGroup& group) {
  FlowProblem problem{.topology = &topology, .demands = {}, .orbit = {}, .share = {}, .capacity = {}};
  for (size_t s = 0; s < demands.sources.size(); ++s) {
    const Rank rank = *topology.RankOf(NodeId(demands.sources[s]));
    if (group.Representative(group.OrbitOf(rank)) != rank) continue;
    problem.demands.sources.push_back(demands.sources[s]);
    problem.demands.to.push_back(demands.to[s]);
  }
  for (int32_t l = 0; l < topology.num_links(); ++l) problem.orbit.push_back(group.OrbitOf(LinkId(l)));
  for (int32_t o = 0; o < group.num_link_orbits(); ++o) {
    problem.share.push_back(group.LinkShare(o));
    problem.capacity.push_back(
        static_cast<double>(topology.link(group.LinkRepresentative(o)).bandwidth_bytes_per_s));
  }
  return problem;
}

ConcurrentFlow SolveConcurrentFlow(const FlowProblem& problem, const FlowOptions& options) {
  if (problem.demands.sources.empty()) return {};
  return CuttingPlanes(problem, options).Run();
}

double CrowdedFlowBound(const FlowProblem& problem, int32_t rounds) {
  ShortestPaths shortest(problem);
  // Gives all links equal lengths in the first round.
  std::vector<double> prices, load(problem.share.size());
  for (const double share : problem.share) prices.push_back(1 / share);
  double best = 0;
  for (int32_t round = 0; round < rounds; ++round) {
    std::fill(load.begin(), load.end(), 0);
    best = std::max(best, shortest.Bound(prices, [&](size_t, const std::vector<ShortestPaths::Label>&,
                                                     const std::vector<double>& uses) {
      for (size_t o = 0; o < uses.size(); ++o) load[o] += uses[o];
    }));
    double most = 0;
    for (size_t o = 0; o < load.size(); ++o) {
      load[o] /= problem.capacity[o];
      most = std::max(most, load[o]);
    }
    for (size_t o = 0; o < load.size(); ++o) prices[o] *= 1 + kGrowth * load[o] / most;
  }
  return best;
}

}  // namespace xccl
