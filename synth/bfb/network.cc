// Fills each table in one pass over the hops.
#include "synth/bfb/network.h"

#include <algorithm>

namespace xccl {

BfbNetwork::BfbNetwork(const RankGraph& graph, int64_t most_latency_ps)
    : graph_(&graph), most_latency_ps_(most_latency_ps) {
  const size_t ranks = static_cast<size_t>(graph.num_ranks());
  // The graph's hops are sorted by the rank that they leave. The hops into each rank keep this order.
  in_ = GroupItems<InHop>(ranks, [&](auto add) {
    for (int32_t h = 0; h < graph.num_hops(); ++h)
      if (const Hop& hop = graph.hop(HopId(h)); hop.latency_ps <= most_latency_ps)
        add(hop.to.index(), InHop{hop.from, HopId(h), 0});
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

std::vector<int32_t> BfbNetwork::Distances(Rank start, bool backwards) const {
  const size_t ranks = static_cast<size_t>(num_ranks());
  std::vector<int32_t> distance(ranks, -1), queue = {start.value};
  distance[start.index()] = 0;
  for (size_t i = 0; i < queue.size() && queue.size() < ranks; ++i) {
    const Rank at(queue[i]);
    const auto visit = [&](Rank to) {
      if (distance[to.index()] >= 0) return;
      distance[to.index()] = distance[at.index()] + 1;
      queue.push_back(to.value);
    };
    if (backwards) {
      for (const InHop& hop : In(at)) visit(hop.from);
    } else {
      for (int32_t h = graph_->FirstOut(at).value; h < graph_->EndOut(at).value; ++h)
        if (const Hop& hop = graph_->hop(HopId(h)); hop.latency_ps <= most_latency_ps_) visit(hop.to);
    }
  }
  return distance;
}

int64_t LatencyThatJoins(const RankGraph& graph, std::span<const Rank> members) {
  std::vector<int64_t> latencies = {0};
  for (int32_t h = 0; h < graph.num_hops(); ++h) latencies.push_back(graph.hop(HopId(h)).latency_ps);
  std::ranges::sort(latencies);
  const auto cuts_off = [&](int64_t most_ps) {
    const BfbNetwork network(graph, most_ps);
    return std::ranges::any_of(std::initializer_list<bool>{false, true}, [&](bool backwards) {
      const std::vector<int32_t> distance = network.Distances(members[0], backwards);
      return std::ranges::any_of(members, [&](Rank r) { return distance[r.index()] < 0; });
    });
  };
  latencies.erase(std::unique(latencies.begin(), latencies.end()), latencies.end());
  return *std::partition_point(latencies.begin(), latencies.end() - 1, cuts_off);
}

}  // namespace xccl
