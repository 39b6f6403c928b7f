// One pass over the hops for each table. A distance is hops, or latency in units of the greatest common
// divisor with a little for each hop, so that of equally long ways the one of fewer hops is the shorter.
#include "synth/bfb/network.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace xccl {
namespace {

constexpr int64_t kCostRange = 1 << 20;  // of one hop; sums of 2,000 of them fit
constexpr int64_t kPerHop = 64;          // latency counts so many times as much as the number of hops

// What a hop of this latency costs.
class HopCosts {
 public:
  HopCosts(const RankGraph& graph, int64_t most_latency_ps, BfbMetric metric) {
    if (metric == BfbMetric::kHops) return;
    int64_t longest = 0, shortest = most_latency_ps, divisor = 0;
    for (int32_t h = 0; h < graph.num_hops(); ++h) {
      const int64_t latency = graph.hop(HopId(h)).latency_ps;
      if (latency > most_latency_ps) continue;
      longest = std::max(longest, latency);
      shortest = std::min(shortest, latency);
      divisor = std::gcd(divisor, latency);
    }
    if (longest == shortest || divisor == 0) return;
    unit_ = std::max(divisor, longest * kPerHop / kCostRange);
  }
  int32_t operator()(int64_t latency_ps) const {
    return unit_ == 0 ? 1 : static_cast<int32_t>(latency_ps * kPerHop / unit_) + 1;
  }
  bool AreOne() const { return unit_ == 0; }

 private:
  int64_t unit_ = 0;  // 0: all hops cost 1
};

}  // namespace

BfbNetwork::BfbNetwork(const RankGraph& graph, int64_t most_latency_ps, BfbMetric metric) : graph_(&graph) {
  const size_t ranks = static_cast<size_t>(graph.num_ranks());
  const HopCosts costs(graph, most_latency_ps, metric);
  hops_cost_one_ = costs.AreOne();
  const auto for_each_used = [&](auto visit) {
    for (int32_t h = 0; h < graph.num_hops(); ++h)
      if (const Hop& hop = graph.hop(HopId(h)); hop.latency_ps <= most_latency_ps) visit(HopId(h), hop);
  };
  out_ = GroupItems<Edge>(ranks, [&](auto add) {
    for_each_used([&](HopId, const Hop& hop) {
      add(hop.from.index(), Edge{hop.to.value, costs(hop.latency_ps)});
    });
  });
  // Hops are sorted by the rank that they leave, so those into a rank come in that order.
  in_ = GroupItems<InHop>(ranks, [&](auto add) {
    for_each_used([&](HopId h, const Hop& hop) {
      add(hop.to.index(), InHop{hop.from, h, 0, costs(hop.latency_ps)});
    });
  });

  std::vector<double>& speeds = port_speed_.items;
  std::vector<int32_t> port_of_link(static_cast<size_t>(graph.topology().num_links()), -1);
  for (size_t r = 0; r < ranks; ++r) {
    for (int32_t i = in_.first[r]; i < in_.first[r + 1]; ++i) {
      InHop& in = in_.items[i];
      const Hop& hop = graph.hop(in.hop);
      int32_t& port = port_of_link[graph.Links(in.hop).back().index()];
      if (port < 0) {
        port = static_cast<int32_t>(speeds.size()) - port_speed_.first.back();
        speeds.push_back(0);
      }
      in.port = port;
      double& speed = speeds[static_cast<size_t>(port_speed_.first.back() + port)];
      speed = std::max(speed, static_cast<double>(hop.bandwidth_bytes_per_s));
    }
    port_speed_.first.push_back(static_cast<int32_t>(speeds.size()));
  }
}

std::vector<int32_t> BfbNetwork::DistancesTo(Rank rank) const { return Search(rank, true); }
std::vector<int32_t> BfbNetwork::DistancesFrom(Rank rank) const { return Search(rank, false); }

std::vector<int32_t> BfbNetwork::Search(Rank start, bool backwards) const {
  const size_t ranks = static_cast<size_t>(num_ranks());
  std::vector<int32_t> distance(ranks, -1);
  distance[start.index()] = 0;
  const auto for_each = [&](int32_t at, const auto& visit) {
    if (backwards) {
      for (const InHop& hop : In(Rank(at))) visit(hop.from.value, hop.cost);
    } else {
      for (const Edge& edge : out_[at]) visit(edge.to, edge.cost);
    }
  };
  if (hops_cost_one_) {
    std::vector<int32_t> queue = {start.value};
    for (size_t i = 0; i < queue.size() && queue.size() < ranks; ++i) {
      for_each(queue[i], [&](int32_t to, int32_t) {
        if (distance[to] >= 0) return;
        distance[to] = distance[queue[i]] + 1;
        queue.push_back(to);
      });
    }
    return distance;
  }
  using Entry = std::pair<int32_t, int32_t>;  // distance, rank
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
  std::vector<bool> done(ranks, false);
  heap.push({0, start.value});
  while (!heap.empty()) {
    const auto [d, at] = heap.top();
    heap.pop();
    if (done[static_cast<size_t>(at)]) continue;
    done[static_cast<size_t>(at)] = true;
    for_each(at, [&, from = d](int32_t to, int32_t cost) {
      if (distance[to] >= 0 && distance[to] <= from + cost) return;
      distance[to] = from + cost;
      heap.push({from + cost, to});
    });
  }
  return distance;
}

std::vector<int64_t> LatencyClasses(const RankGraph& graph, std::span<const Rank> members) {
  std::vector<int64_t> classes;
  for (int32_t h = 0; h < graph.num_hops(); ++h) classes.push_back(graph.hop(HopId(h)).latency_ps);
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  const auto joins = [&](int64_t most) {
    const BfbNetwork network(graph, most, BfbMetric::kHops);
    for (const bool backwards : {false, true}) {
      const std::vector<int32_t> distance =
          backwards ? network.DistancesTo(members[0]) : network.DistancesFrom(members[0]);
      for (Rank r : members)
        if (distance[r.index()] < 0) return false;
    }
    return true;
  };
  size_t low = 0, high = classes.empty() ? 0 : classes.size() - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (joins(classes[middle])) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  classes.erase(classes.begin(), classes.begin() + static_cast<int64_t>(low));
  return classes;
}

}  // namespace xccl
