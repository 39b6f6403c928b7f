// Groups are the components of a union-find over the links that are fast enough. Sweeps work as follows:
// 1. Landmarks are chosen far from each other. Differences of hops to two landmarks are the keys of the
//    nodes.
// 2. A sweep sorts the nodes by key. One cut lies between each two neighbouring keys.
// 3. A link or a demand adds its amount at the first cut that it crosses, and subtracts it after the last.
// 4. A running sum from the lowest place to the highest gives the bandwidth and the bytes across every cut.
#include "ir/bounds/node_cuts.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "base/graph/union_find.h"

namespace xccl {
namespace {

// Most bandwidths for which groups are formed, the fastest first.
constexpr size_t kMostBandwidths = 32;

// Returns the fewest links, in either direction, from the node to every node; -1 without a path.
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

// Number of landmarks: a grid of three dimensions has four corners that are far from each other.
constexpr size_t kLandmarks = 4;

// Picks landmarks far from each other: each is the node farthest from the landmarks before it. Returns the
// hops from each landmark to every node.
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

NodeGroups JoinedBy(const Topology& topology, int64_t bandwidth_bytes_per_s) {
  UnionFind joined(static_cast<size_t>(topology.num_nodes()));
  for (const Link& link : topology.spec().links)
    if (link.bandwidth_bytes_per_s >= bandwidth_bytes_per_s) joined.Join(link.from.value, link.to.value);
  NodeGroups group_of(static_cast<size_t>(topology.num_nodes()), -1);
  std::vector<bool> has_gpu(group_of.size(), false);
  for (int32_t r = 0; r < topology.num_ranks(); ++r)
    has_gpu[joined.Find(topology.NodeOf(Rank(r)).value)] = true;
  for (int32_t n = 0; n < topology.num_nodes(); ++n)
    if (has_gpu[joined.Find(n)]) group_of[n] = joined.Find(n);
  return group_of;
}

}  // namespace

NodeGroups EachGpu(const Topology& topology) {
  NodeGroups group_of(static_cast<size_t>(topology.num_nodes()), -1);
  for (int32_t r = 0; r < topology.num_ranks(); ++r) group_of[topology.NodeOf(Rank(r)).index()] = r;
  return group_of;
}

NodeGroups EachHost(const Topology& topology) {
  NodeGroups group_of(static_cast<size_t>(topology.num_nodes()), -1);
  for (int32_t n = 0; n < topology.num_nodes(); ++n)
    if (topology.node(NodeId(n)).host) group_of[n] = topology.node(NodeId(n)).host->value;
  return group_of;
}

std::vector<NodeGroups> JoinedByFastLinks(const Topology& topology) {
  std::set<int64_t, std::greater<>> bandwidths;
  for (const Link& link : topology.spec().links) bandwidths.insert(link.bandwidth_bytes_per_s);
  std::vector<NodeGroups> groups;
  // Leaves out the least bandwidth, because all links together join all nodes.
  for (auto b = bandwidths.begin(); groups.size() + 1 < bandwidths.size() && groups.size() < kMostBandwidths;
       ++b)
    groups.push_back(JoinedBy(topology, *b));
  return groups;
}

std::vector<OutAndIn> BandwidthAround(const Topology& topology, const NodeGroups& group_of) {
  std::vector<OutAndIn> around(static_cast<size_t>(std::ranges::max(group_of) + 1));
  for (const Link& link : topology.spec().links) {
    const int32_t from = group_of[link.from.index()], to = group_of[link.to.index()];
    if (from == to) continue;
    if (from >= 0) around[from].out += static_cast<double>(link.bandwidth_bytes_per_s);
    if (to >= 0) around[to].in += static_cast<double>(link.bandwidth_bytes_per_s);
  }
  return around;
}

double PassBandwidth(const Topology& topology, const NodeGroups& group_of) {
  for (int32_t n = 0; n < topology.num_nodes(); ++n)
    if (const Node& node = topology.node(NodeId(n)); group_of[n] < 0 && (node.multicast || node.reduce))
      return 0;
  OutAndIn all;
  for (const OutAndIn& group : BandwidthAround(topology, group_of)) {
    all.out += group.out;
    all.in += group.in;
  }
  return std::min(all.out, all.in);
}

double SecondsAround(const std::vector<OutAndIn>& bytes, const std::vector<OutAndIn>& bandwidth) {
  double seconds = 0;
  for (size_t g = 0; g < bandwidth.size(); ++g) {
    if (bandwidth[g].out > 0) seconds = std::max(seconds, bytes[g].out / bandwidth[g].out);
    if (bandwidth[g].in > 0) seconds = std::max(seconds, bytes[g].in / bandwidth[g].in);
  }
  return seconds;
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

NodeSweep::NodeSweep(const Topology& topology, const std::vector<int32_t>& key) {
  std::vector<int32_t> distinct(key);
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (int32_t k : key)
    place_.push_back(static_cast<int32_t>(std::ranges::lower_bound(distinct, k) - distinct.begin()));
  up_.resize(distinct.size());
  down_.resize(distinct.size());
  for (const Link& link : topology.spec().links)
    Between(PlaceOf(link.from.value), PlaceOf(link.to.value), &Change::bandwidth,
            static_cast<double>(link.bandwidth_bytes_per_s));
}

void NodeSweep::Between(int32_t from, int32_t to, double Change::*what, double amount) {
  std::vector<Change>& changes = from < to ? up_ : down_;
  changes[std::min(from, to)].*what += amount;
  changes[std::max(from, to)].*what -= amount;
}

double NodeSweep::Seconds() const {
  double seconds = 0;
  for (const std::vector<Change>* const changes : {&up_, &down_}) {
    Change across;
    for (const Change& change : *changes) {
      across.bytes += change.bytes;
      across.bandwidth += change.bandwidth;
      if (across.bandwidth > 0.5) seconds = std::max(seconds, across.bytes / across.bandwidth);
    }
  }
  return seconds;
}

}  // namespace xccl
