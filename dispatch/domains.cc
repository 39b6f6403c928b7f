// Domains are the sets of a union-find over links. Paths are searched from one GPU at a time (Dijkstra 1959);
// only the start and nodes that are no GPU are expanded. A path is read backwards from its end: every link
// that fits the distances exactly belongs to some path of least cost, and the emptiest one is taken.
#include "dispatch/domains.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "base/check.h"
#include "base/graph/union_find.h"
#include "base/units.h"

namespace xccl::dispatch {
namespace {

constexpr int32_t kRanksBetweenLooks = 64;  // searches after which the time of all is foreseen

// By host: do its GPUs, two or more, reach each other over links inside the host and no NIC?
std::vector<bool> JoinedInside(const Topology& topology) {
  UnionFind sets(topology.num_nodes());
  const auto usable = [&](NodeId n) { return topology.node(n).kind != NodeKind::kNic; };
  for (const Link& link : topology.spec().links) {
    const Node &from = topology.node(link.from), &to = topology.node(link.to);
    if (usable(link.from) && usable(link.to) && from.host && from.host == to.host)
      sets.Join(link.from.value, link.to.value);
  }
  std::vector<int32_t> first(topology.num_hosts(), -1), gpus(topology.num_hosts());
  std::vector<bool> joined(topology.num_hosts(), true);
  for (const Rank rank : AllRanks(topology.num_ranks())) {
    const size_t host = topology.HostOf(rank).index();
    const int32_t set = sets.Find(topology.NodeOf(rank).value);
    if (gpus[host]++ == 0) first[host] = set;
    if (set != first[host]) joined[host] = false;
  }
  for (size_t host = 0; host < joined.size(); ++host) joined[host] = joined[host] && gpus[host] > 1;
  return joined;
}

}  // namespace

Domains FindDomains(const Topology& topology) {
  const std::vector<bool> joined = JoinedInside(topology);
  const auto closed = [&](const Node& node) { return node.host && joined[node.host->index()]; };
  UnionFind sets(topology.num_nodes());
  for (const Link& link : topology.spec().links) {
    const Node &from = topology.node(link.from), &to = topology.node(link.to);
    if (from.kind == NodeKind::kNic || to.kind == NodeKind::kNic) continue;
    if (from.host != to.host && (closed(from) || closed(to))) continue;
    sets.Join(link.from.value, link.to.value);
  }
  Domains domains;
  std::vector<int32_t> number(topology.num_nodes(), -1);
  for (const Rank rank : AllRanks(topology.num_ranks())) {
    int32_t& domain = number[sets.Find(topology.NodeOf(rank).value)];
    if (domain < 0) {
      domain = domains.size();
      domains.members.emplace_back();
    }
    domains.of_rank.push_back(domain);
    domains.place.push_back(static_cast<int32_t>(domains.members[domain].size()));
    domains.members[domain].push_back(rank.value);
  }
  return domains;
}

Paths::Paths(const Topology& topology, int64_t message_bytes, const Deadline& deadline)
    : topology_(topology),
      ranks_(topology.num_ranks()),
      cost_(static_cast<size_t>(ranks_) * ranks_, kForeverPs),
      distance_(topology.num_nodes()),
      load_ps_(topology.num_links()) {
  for (const Link& link : topology.spec().links)
    link_ps_.push_back(link.latency_ps + link.overhead_ps +
                       TransferPs(message_bytes, link.bandwidth_bytes_per_s));
  const auto began = std::chrono::steady_clock::now();
  for (int32_t from = 0; from < ranks_; ++from) {
    // The first ranks tell how long all will take.
    if (from > 0 && deadline.can_pass()) {
      const double passed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      const double all_s = passed_s / from * ranks_;
      if (deadline.IsOver() ||
          (from % kRanksBetweenLooks == 0 && all_s - passed_s > deadline.SecondsLeft())) {
        too_long_s_ = all_s;
        return;
      }
    }
    Search(topology.NodeOf(Rank(from)));
    for (int32_t to = 0; to < ranks_; ++to)
      cost_[static_cast<size_t>(from) * ranks_ + to] = distance_[topology.NodeOf(Rank(to)).index()];
  }
  // Slots are given back on a way back, so a pair that is joined one way alone is not joined.
  for (int32_t a = 0; a < ranks_; ++a)
    for (int32_t b = 0; b < a; ++b) {
      int64_t& there = cost_[static_cast<size_t>(a) * ranks_ + b];
      int64_t& back = cost_[static_cast<size_t>(b) * ranks_ + a];
      if (std::max(there, back) >= kForeverPs) there = back = kForeverPs;
    }
}

bool Paths::Joins(int32_t from, int32_t to) const { return Cost(from, to) < kForeverPs; }

void Paths::Search(NodeId from) {
  if (searched_ == from) return;
  searched_ = from;
  std::ranges::fill(distance_, kForeverPs);
  using Entry = std::pair<int64_t, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  distance_[from.index()] = 0;
  queue.emplace(0, from.value);
  while (!queue.empty()) {
    const auto [distance, n] = queue.top();
    queue.pop();
    const NodeId node(n);
    if (distance > distance_[node.index()] || (topology_.IsGpu(node) && node != from)) continue;
    for (const LinkId l : topology_.Out(node)) {
      const NodeId next = topology_.link(l).to;
      const int64_t through = distance + link_ps_[l.index()];
      if (through >= distance_[next.index()]) continue;
      distance_[next.index()] = through;
      queue.emplace(through, next.value);
    }
  }
}

std::vector<LinkId> Paths::Walk(NodeId from, NodeId to) {
  Search(from);
  std::vector<LinkId> path;
  for (NodeId at = to; at != from;) {
    std::optional<LinkId> best;
    for (const LinkId l : topology_.In(at)) {
      const NodeId before = topology_.link(l).from;
      const bool may_pass = before == from || !topology_.IsGpu(before);
      if (!may_pass || distance_[before.index()] + link_ps_[l.index()] != distance_[at.index()]) continue;
      if (!best || load_ps_[l.index()] < load_ps_[best->index()]) best = l;
    }
    XCCL_CHECK(best.has_value());
    path.push_back(*best);
    at = topology_.link(*best).from;
  }
  std::ranges::reverse(path);
  return path;
}

void Paths::Load(const std::vector<LinkId>& path, int64_t bytes) {
  for (const LinkId l : path)
    load_ps_[l.index()] += static_cast<double>(TransferPs(bytes, topology_.link(l).bandwidth_bytes_per_s));
}

std::vector<LinkId> Paths::Take(int32_t from, int32_t to, int64_t bytes) {
  XCCL_CHECK(Joins(from, to) && from != to);
  std::vector<LinkId> path = Walk(topology_.NodeOf(Rank(from)), topology_.NodeOf(Rank(to)));
  Load(path, bytes);
  return path;
}

std::vector<LinkId> Paths::TakeByNicOf(int32_t by, int32_t from, int32_t to, int64_t bytes) {
  const auto is_nic = [&](NodeId node) { return topology_.node(node).kind == NodeKind::kNic; };
  const NodeId end = topology_.NodeOf(Rank(to));
  std::vector<LinkId> path = Walk(topology_.NodeOf(Rank(from)), topology_.NodeOf(Rank(by)));
  while (!path.empty() && !is_nic(topology_.link(path.back()).to)) path.pop_back();
  if (path.empty()) return Take(from, to, bytes);
  const NodeId nic = topology_.link(path.back()).to;
  Search(nic);
  if (distance_[end.index()] >= kForeverPs) return Take(from, to, bytes);
  const std::vector<LinkId> rest = Walk(nic, end);
  for (const LinkId l : rest)
    if (is_nic(topology_.link(l).to)) return Take(from, to, bytes);
  path.insert(path.end(), rest.begin(), rest.end());
  Load(path, bytes);
  return path;
}

}  // namespace xccl::dispatch
