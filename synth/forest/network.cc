// The rate for a fixed k by cutting planes: U grows to the least that lets the last violated cut through,
// until no cut is violated. Only multiples m ÷ b of the bandwidths change a capacity, so U is kept as such a
// fraction.
#include "synth/forest/network.h"

#include <algorithm>
#include <numeric>

#include "ir/bounds/bound_cut.h"

namespace xccl::forest {
namespace {

constexpr int64_t kMostTrees = 1 << 16;              // exact k beyond this is replaced
constexpr int64_t kMostCapacity = int64_t{1} << 50;  // sum of all capacities
constexpr int64_t kGoodTrees[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 1024};
constexpr double kGoodLoss = 1e-4;  // a smaller k is taken where it loses no more than this

struct Fraction {
  int64_t num = 0, den = 1;
};
bool Less(const Fraction& a, const Fraction& b) {
  return static_cast<__int128>(a.num) * b.den < static_cast<__int128>(b.num) * a.den;
}

int64_t FloorTimes(const Fraction& u, int64_t b) {
  return static_cast<int64_t>(static_cast<__int128>(u.num) * b / u.den);
}

// Bandwidths without their common divisor.
struct Bandwidths {
  std::vector<int64_t> of_link;
  int64_t unit = 1;
};

Bandwidths Reduced(const Topology& topology) {
  Bandwidths made;
  int64_t unit = 0;
  for (const Link& link : topology.spec().links) unit = std::gcd(unit, link.bandwidth_bytes_per_s);
  if (unit > 0) made.unit = unit;
  for (const Link& link : topology.spec().links)
    made.of_link.push_back(link.bandwidth_bytes_per_s / made.unit);
  return made;
}

class RateSearch {
 public:
  RateSearch(const Topology& topology, const Collective& collective)
      : topology_(topology),
        bandwidths_(Reduced(topology)),
        weights_(WeightsOf(topology, collective)),
        graph_(topology.num_nodes()),
        oracle_(graph_, members_) {
    for (Rank r : collective.ranks()) members_.push_back(topology.NodeOf(r).value);
    for (const Link& link : topology.spec().links)
      arc_of_link_.push_back(graph_.ArcOf(link.from.value, link.to.value));
    for (int64_t w : weights_) total_weight_ += w;
    for (int64_t b : bandwidths_.of_link) total_bandwidth_ += b;
    CutProblem problem;
    problem.supply_bytes = weights_;
    for (int32_t node : members_) problem.sinks.emplace_back(node);
    if (const std::optional<WorstCut> cut = FindWorstCut(topology, problem)) {
      const int64_t q = cut->bytes_per_s / bandwidths_.unit, divisor = std::gcd(cut->bytes, q);
      best_ = Fraction{cut->bytes / divisor, q / divisor};
    }
  }

  Network Make(std::optional<int64_t> trees) {
    if (trees) return Fixed(*trees);
    if (best_.num > 0 && best_.den <= kMostTrees &&
        static_cast<__int128>(best_.num) * total_bandwidth_ <= kMostCapacity &&
        static_cast<__int128>(best_.den) * total_weight_ <= kMostCapacity)
      return Build({best_.num, 1}, best_.den);
    std::optional<Network> best;
    for (int64_t k : kGoodTrees) {
      Network network = Fixed(k);
      if (!best || network.rate_loss < best->rate_loss) best = std::move(network);
      if (best->rate_loss <= kGoodLoss) break;
    }
    return *std::move(best);
  }

 private:
  Network Fixed(int64_t k) {
    Demands demands{weights_, total_weight_ * k};
    for (int64_t& at : demands.at) at *= k;
    // No U below k times the best is worth looking at.
    Fraction u{1, 1};
    if (best_.num > 0) {
      const int64_t largest = *std::max_element(bandwidths_.of_link.begin(), bandwidths_.of_link.end());
      u = {std::max<int64_t>(
               1, static_cast<int64_t>(static_cast<__int128>(best_.num) * k * largest / best_.den)),
           largest};
    }
    while (true) {
      SetCapacities(u);
      const std::vector<Cut> violated = oracle_.FindViolated(demands, 8);
      if (violated.empty()) break;
      for (const Cut& cut : violated) u = std::max(u, LeastFor(cut, demands), Less);
    }
    return Build(u, k);
  }

  void SetCapacities(const Fraction& u) {
    for (int32_t a = 0; a < graph_.num_arcs(); ++a) graph_.capacity(a) = 0;
    for (size_t l = 0; l < arc_of_link_.size(); ++l)
      graph_.capacity(arc_of_link_[l]) += FloorTimes(u, bandwidths_.of_link[l]);
  }

  // The least U that gives the cut its demand.
  Fraction LeastFor(const Cut& cut, const Demands& demands) const {
    int64_t needed = demands.total;
    for (size_t node = 0; node < cut.inside.size(); ++node)
      if (cut.inside[node]) needed -= demands.at[node];
    std::vector<int64_t> entering;
    for (size_t l = 0; l < arc_of_link_.size(); ++l) {
      const CapacityGraph::Arc& arc = graph_.arc(arc_of_link_[l]);
      if (cut.inside[arc.to] && !cut.inside[arc.from]) entering.push_back(bandwidths_.of_link[l]);
    }
    XCCL_CHECK(!entering.empty());
    const auto enough = [&](const Fraction& u) {
      __int128 sum = 0;
      for (int64_t b : entering) sum += FloorTimes(u, b);
      return sum >= needed;
    };
    std::vector<int64_t> distinct = entering;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    std::optional<Fraction> least;
    for (int64_t b : distinct) {
      int64_t low = 0, high = needed;  // high always suffices: one link alone
      while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        (enough({middle, b}) ? high : low) = middle;
      }
      if (!least || Less({high, b}, *least)) least = Fraction{high, b};
    }
    return *least;
  }

  Network Build(const Fraction& u, int64_t k) const {
    Network network{.graph = CapacityGraph(topology_.num_nodes()),
                    .pieces = {},
                    .paths = {},
                    .demands = {weights_, total_weight_ * k},
                    .members = members_,
                    .trees = k,
                    .rate_loss = 0};
    for (int64_t& at : network.demands.at) at *= k;
    for (size_t l = 0; l < arc_of_link_.size(); ++l) {
      const int64_t amount = FloorTimes(u, bandwidths_.of_link[l]);
      if (amount == 0) continue;
      const LinkId id(static_cast<int64_t>(l));
      const int32_t arc = network.graph.ArcOf(topology_.link(id).from.value, topology_.link(id).to.value);
      network.graph.capacity(arc) += amount;
      network.pieces.resize(static_cast<size_t>(network.graph.num_arcs()));
      network.pieces[arc].push_back({network.paths.Single(id), amount});
    }
    if (best_.num > 0)
      network.rate_loss = static_cast<double>(u.num) / static_cast<double>(u.den) / static_cast<double>(k) /
                              (static_cast<double>(best_.num) / static_cast<double>(best_.den)) -
                          1;
    return network;
  }

  const Topology& topology_;
  const Bandwidths bandwidths_;
  const std::vector<int64_t> weights_;
  std::vector<int32_t> members_;
  CapacityGraph graph_;
  CutOracle oracle_;
  std::vector<int32_t> arc_of_link_;
  int64_t total_weight_ = 0;
  __int128 total_bandwidth_ = 0;
  Fraction best_{0, 1};  // time of a unit of weight; 0: unknown
};

}  // namespace

int32_t PathArena::Single(LinkId link) {
  items_.push_back({link.value, -1});
  return static_cast<int32_t>(items_.size()) - 1;
}

int32_t PathArena::Join(int32_t first, int32_t second) {
  items_.push_back({first, second});
  return static_cast<int32_t>(items_.size()) - 1;
}

void PathArena::Append(int32_t path, std::vector<LinkId>& links) const {
  std::vector<int32_t> stack = {path};
  while (!stack.empty()) {
    const Item item = items_[stack.back()];
    stack.pop_back();
    if (item.second < 0) {
      links.emplace_back(item.first);
      continue;
    }
    stack.push_back(item.second);
    stack.push_back(item.first);
  }
}

std::vector<int64_t> WeightsOf(const Topology& topology, const Collective& collective) {
  std::vector<int64_t> weights(static_cast<size_t>(topology.num_nodes()), 0);
  const CollectiveSpec& spec = collective.spec();
  if (spec.root) {
    weights[topology.NodeOf(*spec.root).index()] = 1;
    return weights;
  }
  int64_t divisor = 0;
  for (int64_t count : spec.counts) divisor = std::gcd(divisor, count);
  for (size_t m = 0; m < spec.ranks.size(); ++m)
    weights[topology.NodeOf(spec.ranks[m]).index()] =
        spec.counts.empty() ? 1 : spec.counts[m] / std::max<int64_t>(divisor, 1);
  return weights;
}

Network MakeNetwork(const Topology& topology, const Collective& collective, std::optional<int64_t> trees) {
  return RateSearch(topology, collective).Make(trees);
}

}  // namespace xccl::forest
