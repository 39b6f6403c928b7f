// Every prefix of an order of the nodes is a cut. Moving one node across only changes what its own demands
// and links add, so a sweep costs one pass over demands and links. Hosts, and groups that fast links join,
// are cuts of their own.
#include "ir/bounds/demands.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "base/graph/union_find.h"

namespace xccl {
namespace {

// The number of links from the node to every other, in either direction.
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

// Picks nodes far from each other: each is the farthest from those before.
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

// Sweeps over the cuts between nodes of different keys.
double Sweep(const Topology& topology, const Demands& demands, const std::vector<int32_t>& key) {
  const size_t nodes = key.size();
  std::vector<int32_t> order(nodes), place(nodes);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return key[a] < key[b]; });
  for (size_t i = 0; i < nodes; ++i) place[order[i]] = static_cast<int32_t>(i);
  // A demand or link from place a to place b > a crosses the cuts after a, ..., b - 1 forward; else backward.
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

// The cuts between each group and all other nodes. Group -1 means none.
double GroupCuts(const Topology& topology, const Demands& demands, const std::vector<int32_t>& group) {
  const size_t groups = static_cast<size_t>(*std::max_element(group.begin(), group.end()) + 1);
  std::vector<double> leave(groups, 0), enter(groups, 0), out(groups, 0), in(groups, 0);
  for (const Link& link : topology.spec().links) {
    const int32_t from = group[link.from.index()], to = group[link.to.index()];
    if (from == to) continue;
    if (from >= 0) out[from] += static_cast<double>(link.bandwidth_bytes_per_s);
    if (to >= 0) in[to] += static_cast<double>(link.bandwidth_bytes_per_s);
  }
  for (size_t s = 0; s < demands.sources.size(); ++s) {
    for (const Demands::To& to : demands.to[s]) {
      const int32_t a = group[demands.sources[s]], b = group[to.node];
      if (a == b) continue;
      if (a >= 0) leave[a] += to.bytes;
      if (b >= 0) enter[b] += to.bytes;
    }
  }
  double seconds = 0;
  for (size_t g = 0; g < groups; ++g) {
    if (out[g] > 0) seconds = std::max(seconds, leave[g] / out[g]);
    if (in[g] > 0) seconds = std::max(seconds, enter[g] / in[g]);
  }
  return seconds;
}

std::vector<int32_t> Hosts(const Topology& topology) {
  std::vector<int32_t> group;
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    const std::optional<HostId> host = topology.node(NodeId(n)).host;
    group.push_back(host ? host->value : -1);
  }
  return group;
}

// Groups of nodes that links of at least this bandwidth join: unnamed hosts, and groups of hosts.
std::vector<int32_t> JoinedBy(const Topology& topology, int64_t bandwidth_bytes_per_s) {
  UnionFind joined(static_cast<size_t>(topology.num_nodes()));
  for (const Link& link : topology.spec().links)
    if (link.bandwidth_bytes_per_s >= bandwidth_bytes_per_s) joined.Join(link.from.value, link.to.value);
  std::vector<int32_t> group;
  for (int32_t n = 0; n < topology.num_nodes(); ++n) group.push_back(joined.Find(n));
  return group;
}

constexpr size_t kBandwidths = 8;

double ClusterCuts(const Topology& topology, const Demands& demands) {
  double seconds = GroupCuts(topology, demands, Hosts(topology));
  std::set<int64_t, std::greater<>> bandwidths;
  for (const Link& link : topology.spec().links) bandwidths.insert(link.bandwidth_bytes_per_s);
  // All links together join all nodes, so the slowest kind is left out.
  size_t left = std::min(kBandwidths, bandwidths.size() - std::min<size_t>(1, bandwidths.size()));
  for (auto b = bandwidths.begin(); left > 0; ++b, --left)
    seconds = std::max(seconds, GroupCuts(topology, demands, JoinedBy(topology, *b)));
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
  double seconds = ClusterCuts(topology, demands);
  for (const std::vector<int32_t>& key : SweepKeys(topology))
    seconds = std::max(seconds, Sweep(topology, demands, key));
  return seconds;
}

}  // namespace xccl
