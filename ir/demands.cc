// Orders of the nodes, and every prefix of an order as a cut: moving one node across changes what its own
// demands and links add, so a whole sweep costs one pass over demands and links.
#include "ir/demands.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace xccl {
namespace {

// Links from the node to all others, either way.
std::vector<int32_t> Hops(const Topology& topology, int32_t from) {
  std::vector<int32_t> hops(static_cast<size_t>(topology.num_nodes()), -1);
  std::vector<int32_t> queue = {from};
  hops[from] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto reach = [&](NodeId next) {
      if (hops[next.index()] >= 0) return;
      hops[next.index()] = hops[queue[i]] + 1;
      queue.push_back(next.value);
    };
    for (LinkId l : topology.Out(NodeId(queue[i]))) reach(topology.link(l).to);
    for (LinkId l : topology.In(NodeId(queue[i]))) reach(topology.link(l).from);
  }
  return hops;
}

constexpr size_t kLandmarks = 4;

// Nodes far from each other: each the farthest from those before.
std::vector<std::vector<int32_t>> LandmarkHops(const Topology& topology) {
  std::vector<std::vector<int32_t>> landmarks = {Hops(topology, 0)};
  std::vector<int32_t> nearest = landmarks[0];
  while (landmarks.size() < kLandmarks) {
    const int32_t far =
        static_cast<int32_t>(std::max_element(nearest.begin(), nearest.end()) - nearest.begin());
    if (nearest[far] <= 0) break;
    landmarks.push_back(Hops(topology, far));
    for (size_t n = 0; n < nearest.size(); ++n) nearest[n] = std::min(nearest[n], landmarks.back()[n]);
  }
  return landmarks;
}

// Cuts only between nodes of different keys.
double Sweep(const Topology& topology, const Demands& demands, const std::vector<int32_t>& key) {
  const size_t nodes = key.size();
  std::vector<int32_t> order(nodes), place(nodes);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return key[a] < key[b]; });
  for (size_t i = 0; i < nodes; ++i) place[order[i]] = static_cast<int32_t>(i);
  // A thing from place a to place b > a crosses the cuts after a, ..., b - 1 forward; backward otherwise.
  struct Step {
    double demand = 0, bandwidth = 0;
  };
  std::vector<Step> forward(nodes + 1), backward(nodes + 1);
  const auto across = [&](int32_t from, int32_t to, double Step::*what, double amount) {
    std::vector<Step>& steps = place[from] < place[to] ? forward : backward;
    steps[std::min(place[from], place[to])].*what += amount;
    steps[std::max(place[from], place[to])].*what -= amount;
  };
  for (size_t s = 0; s < demands.sources.size(); ++s)
    for (const Demands::To& to : demands.to[s]) across(demands.sources[s], to.node, &Step::demand, to.bytes);
  for (const Link& link : topology.spec().links)
    across(link.from.value, link.to.value, &Step::bandwidth, static_cast<double>(link.bandwidth_bytes_per_s));
  double seconds = 0;
  Step f, b;
  for (size_t i = 0; i + 1 < nodes; ++i) {
    f.demand += forward[i].demand;
    f.bandwidth += forward[i].bandwidth;
    b.demand += backward[i].demand;
    b.bandwidth += backward[i].bandwidth;
    if (key[order[i]] == key[order[i + 1]]) continue;
    if (f.bandwidth > 0.5) seconds = std::max(seconds, f.demand / f.bandwidth);
    if (b.bandwidth > 0.5) seconds = std::max(seconds, b.demand / b.bandwidth);
  }
  return seconds;
}

// Each host against all else.
double HostCuts(const Topology& topology, const Demands& demands) {
  const size_t hosts = static_cast<size_t>(topology.num_hosts());
  std::vector<double> leave(hosts, 0), enter(hosts, 0), out(hosts, 0), in(hosts, 0);
  const auto host = [&](int32_t node) { return topology.node(NodeId(node)).host; };
  for (const Link& link : topology.spec().links) {
    const auto from = host(link.from.value), to = host(link.to.value);
    if (from == to) continue;
    if (from) out[from->index()] += static_cast<double>(link.bandwidth_bytes_per_s);
    if (to) in[to->index()] += static_cast<double>(link.bandwidth_bytes_per_s);
  }
  for (size_t s = 0; s < demands.sources.size(); ++s) {
    for (const Demands::To& to : demands.to[s]) {
      const auto a = host(demands.sources[s]), b = host(to.node);
      if (a == b) continue;
      leave[a->index()] += to.bytes;
      enter[b->index()] += to.bytes;
    }
  }
  double seconds = 0;
  for (size_t h = 0; h < hosts; ++h) {
    if (out[h] > 0) seconds = std::max(seconds, leave[h] / out[h]);
    if (in[h] > 0) seconds = std::max(seconds, enter[h] / in[h]);
  }
  return seconds;
}

}  // namespace

Demands DemandsOf(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes,
                  double least_bytes) {
  std::map<int32_t, std::vector<Demands::To>> by_source;
  std::vector<Holding> before, after;
  for (int32_t p = 0; p < collective.num_parts(); ++p) {
    const double bytes = std::max(static_cast<double>(sizes.PartBytes(PartId(p))), least_bytes);
    if (bytes == 0) continue;
    collective.Before(collective.FirstChunk(PartId(p)), before);
    for (int32_t i = 0; i < collective.ChunksOf(PartId(p)); ++i) {
      collective.After(ChunkId(collective.FirstChunk(PartId(p)).value + i), after);
      if (!after.empty()) break;
    }
    if (before.empty() || after.empty() || before[0].rank == after[0].rank) continue;
    by_source[topology.NodeOf(before[0].rank).value].push_back(
        {topology.NodeOf(after[0].rank).value, bytes, PartId(p)});
  }
  Demands demands;
  for (auto& [node, to] : by_source) {
    demands.sources.push_back(node);
    demands.to.push_back(std::move(to));
  }
  return demands;
}

std::vector<std::vector<int32_t>> SweepKeys(const Topology& topology) {
  std::vector<int32_t> key(static_cast<size_t>(topology.num_nodes()));
  std::iota(key.begin(), key.end(), 0);
  std::vector<std::vector<int32_t>> keys = {key};
  const std::vector<std::vector<int32_t>> landmarks = LandmarkHops(topology);
  for (size_t a = 0; a < landmarks.size(); ++a) {
    for (size_t b = a + 1; b < landmarks.size(); ++b) {
      for (size_t n = 0; n < key.size(); ++n) key[n] = landmarks[a][n] - landmarks[b][n];
      keys.push_back(key);
    }
  }
  return keys;
}

double SweepCuts(const Topology& topology, const Demands& demands) {
  double seconds = HostCuts(topology, demands);
  for (const std::vector<int32_t>& key : SweepKeys(topology))
    seconds = std::max(seconds, Sweep(topology, demands, key));
  return seconds;
}

}  // namespace xccl
