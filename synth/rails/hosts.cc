// HostSearch is Dijkstra's search with labels (width, latency, hops) inside one host. RailHosts runs it
// forward and backward from every member. The member with the best ways to a cable of the host gets that
// cable.
#include "synth/rails/hosts.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/graph/grouped.h"
#include "base/graph/union_find.h"

namespace xccl {

std::vector<int32_t> ScaleUpHosts(const Topology& topology) {
  const auto host_of = [&](NodeId n) { return topology.node(n).host; };
  const auto is_outside = [&](NodeId n) { return !host_of(n) && !topology.IsGpu(n); };
  const int32_t hosts = topology.num_hosts(), nodes = topology.num_nodes();
  std::vector<bool> has_nic(static_cast<size_t>(hosts), false), leads_on(static_cast<size_t>(nodes), false);
  for (const Link& l : topology.spec().links) {
    if (!topology.IsGpu(l.from)) leads_on[l.to.index()] = true;
    if (topology.node(l.from).kind == NodeKind::kNic && host_of(l.from) && is_outside(l.to))
      has_nic[host_of(l.from)->index()] = true;
  }
  // Numbers from 0 are hosts, and numbers from `hosts` are nodes.
  UnionFind joined(static_cast<size_t>(hosts) + static_cast<size_t>(nodes));
  int32_t left = hosts;
  std::vector<bool> is_inside(static_cast<size_t>(nodes), false);
  for (const Link& l : topology.spec().links) {
    const std::optional<HostId> host = host_of(l.from);
    if (!topology.IsGpu(l.from) || !host || !has_nic[host->index()] || !is_outside(l.to) ||
        leads_on[l.to.index()])
      continue;
    const bool is_joined = joined.Join(host->value, hosts + l.to.value);
    if (is_joined && is_inside[l.to.index()]) --left;
    is_inside[l.to.index()] = true;
  }
  std::vector<int32_t> made(static_cast<size_t>(nodes), -1);
  const bool joins = left > 1;
  for (int32_t n = 0; n < nodes; ++n) {
    const std::optional<HostId> host = host_of(NodeId(n));
    if (host) made[static_cast<size_t>(n)] = joins ? joined.Find(host->value) : host->value;
    if (joins && is_inside[static_cast<size_t>(n)]) made[static_cast<size_t>(n)] = joined.Find(hosts + n);
  }
  std::unordered_map<int32_t, int32_t> number;  // by representative
  for (int32_t& host : made)
    if (host >= 0) host = number.try_emplace(host, static_cast<int32_t>(number.size())).first->second;
  return made;
}

bool HostSearch::Label::IsBetter(const Label& other) const {
  return std::tuple(-width, latency_ps, hops) < std::tuple(-other.width, other.latency_ps, other.hops);
}

HostSearch::HostSearch(const Topology& topology)
    : topology_(&topology),
      host_(ScaleUpHosts(topology)),
      stamp_(static_cast<size_t>(topology.num_nodes()), 0),
      label_(static_cast<size_t>(topology.num_nodes())),
      last_link_(static_cast<size_t>(topology.num_nodes())) {}

void HostSearch::Run(Rank gpu, bool backward) {
  ++now_;
  backward_ = backward;
  source_ = topology_->NodeOf(gpu);
  const int32_t host = host_[source_.index()];
  struct Entry {
    Label label;
    NodeId node;
  };
  const auto worse = [](const Entry& a, const Entry& b) {
    return b.label.IsBetter(a.label) || (a.label == b.label && b.node < a.node);
  };
  std::priority_queue<Entry, std::vector<Entry>, decltype(worse)> open(worse);
  const auto reach = [&](NodeId node, const Label& label, std::optional<LinkId> by) {
    Label& old = label_[node.index()];
    std::vector<LinkId>& last = last_link_[node.index()];
    if (Reaches(node) && old == label && by) return last.push_back(*by);
    if (Reaches(node) && !label.IsBetter(old)) return;
    stamp_[node.index()] = now_;
    old = label;
    last.clear();
    if (by) last.push_back(*by);
    open.push({label, node});
  };
  reach(source_, {std::numeric_limits<int64_t>::max(), 0, 0}, std::nullopt);
  while (!open.empty()) {
    const Entry at = open.top();
    open.pop();
    if (!(label_[at.node.index()] == at.label)) continue;
    if (at.node != source_ && topology_->IsGpu(at.node)) continue;
    for (LinkId l : backward ? topology_->In(at.node) : topology_->Out(at.node)) {
      const NodeId next = Head(l);
      if (next == source_ || host_[next.index()] != host) continue;
      const Link& link = topology_->link(l);
      reach(next,
            {std::min(at.label.width, link.bandwidth_bytes_per_s),
             at.label.latency_ps + link.latency_ps + link.overhead_ps, at.label.hops + 1},
            l);
    }
  }
}

std::vector<LinkId> HostSearch::Way(NodeId node, size_t turn) const {
  std::vector<LinkId> way;
  while (node != source_) {
    const std::vector<LinkId>& last = last_link_[node.index()];
    way.push_back(last[turn % last.size()]);
    node = Tail(way.back());
  }
  if (!backward_) std::ranges::reverse(way);
  return way;
}

int64_t HostSearch::BandwidthTo(std::span<const Rank> ranks) {
  std::set<NodeId> seen;
  std::vector<NodeId> open;
  const auto add = [&](NodeId node) {
    if (Reaches(node) && node != source_ && seen.insert(node).second) open.push_back(node);
  };
  for (Rank r : ranks) add(topology_->NodeOf(r));
  std::set<LinkId> first;
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    for (LinkId l : last_link_[node.index()]) {
      if (Tail(l) == source_) first.insert(l);
      add(Tail(l));
    }
  }
  int64_t sum = 0;
  for (LinkId l : first) sum += topology_->link(l).bandwidth_bytes_per_s;
  return sum;
}

std::optional<std::vector<LinkId>> MulticastTo(const Topology& topology, Rank gpu,
                                               std::span<const Rank> others, bool backwards,
                                               std::span<const double> load) {
  std::optional<std::vector<LinkId>> best;
  double least = 0;
  for (LinkId up : topology.Out(topology.NodeOf(gpu))) {
    const NodeId at = topology.link(up).to;
    if (others.empty() || !(backwards ? topology.node(at).reduce : topology.node(at).multicast)) continue;
    std::unordered_map<int32_t, LinkId> down;  // by node
    for (LinkId l : topology.Out(at)) down.try_emplace(topology.link(l).to.value, l);
    std::vector<LinkId> tree = {up};
    for (Rank r : others)
      if (const auto l = down.find(topology.NodeOf(r).value); l != down.end()) tree.push_back(l->second);
    if (tree.size() != others.size() + 1) continue;
    double busiest = 0;
    for (LinkId l : tree)
      busiest =
          std::max(busiest, load[l.index()] / static_cast<double>(topology.link(l).bandwidth_bytes_per_s));
    if (best && least <= busiest) continue;
    best = std::move(tree);
    least = busiest;
  }
  return best;
}

namespace {

// A cable between a node of the host and the fabric.
struct Cable {
  NodeId node, fabric;
  LinkId out, in;
};

std::vector<Cable> CablesOf(const Topology& topology, std::span<const NodeId> nodes,
                            std::span<const int32_t> host_of) {
  std::vector<Cable> cables;
  for (NodeId node : nodes) {
    std::vector<LinkId> in(topology.In(node).begin(), topology.In(node).end());
    for (LinkId l : topology.Out(node)) {
      const NodeId fabric = topology.link(l).to;
      if (host_of[fabric.index()] >= 0 || topology.IsGpu(fabric)) continue;
      const auto back = std::ranges::find(in, fabric, [&](LinkId i) { return topology.link(i).from; });
      if (back == in.end()) continue;
      cables.push_back({node, fabric, l, *back});
      in.erase(back);  // each of parallel cables has its own link back
    }
  }
  return cables;
}

// A member's ways to a cable and back.
struct Reach {
  bool is_both = false;
  int64_t width = 0, latency_ps = 0;
  std::vector<LinkId> out, in;
};

std::vector<Reach> ReachOf(const Topology& topology, Rank gpu, std::span<const Cable> cables,
                           HostSearch& search) {
  std::vector<Reach> reach(cables.size());
  for (bool backward : {false, true}) {
    search.Run(gpu, backward);
    for (size_t c = 0; c < cables.size(); ++c) {
      Reach& at = reach[c];
      const NodeId node = cables[c].node;
      const bool is_of_another = topology.IsGpu(node) && node != topology.NodeOf(gpu);
      if (is_of_another || !search.Reaches(node)) continue;
      const Link& cable = topology.link(backward ? cables[c].in : cables[c].out);
      const int64_t width = std::min(search.Width(cables[c].node), cable.bandwidth_bytes_per_s);
      at.is_both = backward && at.width > 0;
      at.width = at.width > 0 ? std::min(at.width, width) : width;
      at.latency_ps += search.Latency(cables[c].node) + cable.latency_ps + cable.overhead_ps;
      (backward ? at.in : at.out) = search.Way(cables[c].node, 0);
    }
  }
  return reach;
}

// Gives every cable to the member with the widest and quickest ways. Among equally good members, the one with
// the fewest ports gets it.
std::vector<Port> PortsOf(const Topology& topology, std::span<const Rank> gpus, std::span<const NodeId> nodes,
                          std::span<const int32_t> host_of, HostSearch& search) {
  const std::vector<Cable> cables = CablesOf(topology, nodes, host_of);
  std::vector<std::vector<Reach>> reach;  // by member, then cable
  for (Rank gpu : gpus) reach.push_back(ReachOf(topology, gpu, cables, search));
  std::vector<int32_t> owned(gpus.size(), 0);
  std::vector<Port> ports;
  std::unordered_map<int32_t, int32_t> uses;  // by link: ports over it
  for (size_t c = 0; c < cables.size(); ++c) {
    std::optional<size_t> best;
    const auto rank_of = [&](size_t g) {
      const Reach& at = reach[g][c];
      return std::tuple(-at.width, at.latency_ps, at.out.size() + at.in.size(), owned[g], g);
    };
    for (size_t g = 0; g < gpus.size(); ++g)
      if (reach[g][c].is_both && (!best || rank_of(g) < rank_of(*best))) best = g;
    if (!best) continue;
    ++owned[*best];
    Reach& at = reach[*best][c];
    Port port{gpus[*best], cables[c].node, cables[c].fabric, std::move(at.out), std::move(at.in),
              0,           at.latency_ps};
    port.out.push_back(cables[c].out);
    port.in.insert(port.in.begin(), cables[c].in);
    for (const std::vector<LinkId>* way : {&port.out, &port.in})
      for (LinkId l : *way) ++uses[l.value];
    ports.push_back(std::move(port));
  }
  for (Port& port : ports) {
    port.bandwidth_bytes_per_s = std::numeric_limits<int64_t>::max();
    for (const std::vector<LinkId>* way : {&port.out, &port.in})
      for (LinkId l : *way)
        port.bandwidth_bytes_per_s =
            std::min(port.bandwidth_bytes_per_s, topology.link(l).bandwidth_bytes_per_s / uses[l.value]);
  }
  std::erase_if(ports, [](const Port& port) { return port.bandwidth_bytes_per_s == 0; });
  return ports;
}

}  // namespace

StatusOr<std::vector<RailHost>> RailHosts(const Topology& topology, std::span<const Rank> members, Rank root,
                                          std::string_view engine) {
  const std::vector<int32_t> host_of = ScaleUpHosts(topology);
  const auto hosts = static_cast<size_t>(*std::ranges::max_element(host_of) + 1);
  std::vector<std::vector<Rank>> gpus(hosts);
  for (Rank r : members) gpus[static_cast<size_t>(host_of[topology.NodeOf(r).index()])].push_back(r);
  const Grouped<NodeId> nodes = GroupItems<NodeId>(hosts, [&](auto add) {
    for (int32_t n = 0; n < topology.num_nodes(); ++n)
      if (host_of[static_cast<size_t>(n)] >= 0) add(host_of[static_cast<size_t>(n)], NodeId(n));
  });
  if (std::ranges::count_if(gpus, [](const std::vector<Rank>& host) { return !host.empty(); }) < 2)
    return InvalidInput(fmt::format(
        "{}: all ranks are on one host; expected two hosts or more; hint: --engine=forest", engine));
  HostSearch search(topology);
  std::vector<RailHost> made;
  const auto first = static_cast<size_t>(host_of[topology.NodeOf(root).index()]);
  for (size_t i = 0; i < hosts; ++i) {
    const size_t h = (first + i) % hosts;
    if (gpus[h].empty()) continue;
    std::ranges::sort(gpus[h]);
    RailHost host{std::move(gpus[h]), {}, {}};
    host.ports = PortsOf(topology, host.gpus, nodes[h], host_of, search);
    if (host.ports.empty())
      return InvalidInput(
          fmt::format("{}: no cable joins host {} to a switch outside hosts in both directions; expected one "
                      "on every host; "
                      "hint: --engine=forest",
                      engine, topology.spec().hosts[topology.HostOf(host.gpus[0]).index()].name));
    made.push_back(std::move(host));
  }
  return made;
}

namespace {

// Returns the number of hops to each node of the fabric from the nearest port of a host; -1 for other nodes.
std::vector<int32_t> Tiers(const Topology& topology, std::span<const RailHost> hosts) {
  std::vector<int32_t> tier(static_cast<size_t>(topology.num_nodes()), -1);
  std::vector<NodeId> queue;
  const auto reach = [&](NodeId node, int32_t hops) {
    if (tier[node.index()] >= 0 || topology.node(node).host || topology.IsGpu(node)) return;
    tier[node.index()] = hops;
    queue.push_back(node);
  };
  for (const RailHost& host : hosts)
    for (const Port& port : host.ports) reach(port.fabric, 0);
  for (size_t i = 0; i < queue.size(); ++i)
    for (LinkId l : topology.Out(queue[i])) reach(topology.link(l).to, tier[queue[i].index()] + 1);
  return tier;
}

// Returns for each switch its neighbours with as many hops to the nearest port (Tiers), ascending.
std::vector<std::vector<NodeId>> NeighboursOfTier(const Topology& topology,
                                                  const std::vector<int32_t>& tier) {
  std::vector<std::vector<NodeId>> near(tier.size());
  for (const Link& l : topology.spec().links)
    if (tier[l.from.index()] >= 0 && tier[l.from.index()] == tier[l.to.index()])
      near[l.from.index()].push_back(l.to);
  for (std::vector<NodeId>& of_switch : near) std::ranges::sort(of_switch);
  return near;
}

// Returns whether the lists of neighbours of two switches have a common node. Both lists are sorted.
bool HaveCommon(const std::vector<NodeId>& a, const std::vector<NodeId>& b) {
  auto x = a.begin(), y = b.begin();
  while (x != a.end() && y != b.end() && *x != *y) ++(*x < *y ? x : y);
  return x != a.end() && y != b.end();
}

}  // namespace

std::vector<std::vector<int32_t>> HostGroups(const Topology& topology, std::span<const RailHost> hosts) {
  const std::vector<int32_t> tier = Tiers(topology, hosts);
  const std::vector<std::vector<NodeId>> near = NeighboursOfTier(topology, tier);
  UnionFind joined(tier.size());
  for (const RailHost& host : hosts)
    for (const Port& port : host.ports) joined.Join(host.ports[0].fabric.value, port.fabric.value);
  std::vector<std::vector<int32_t>> levels;
  const auto add_level = [&](int32_t most) {
    std::unordered_map<int32_t, int32_t> number;  // by representative
    std::vector<int32_t> group_of;
    for (const RailHost& host : hosts)
      group_of.push_back(
          number.try_emplace(joined.Find(host.ports[0].fabric.value), static_cast<int32_t>(number.size()))
              .first->second);
    const auto groups = static_cast<int32_t>(number.size());
    if (1 < groups && groups < most) levels.push_back(std::move(group_of));
    return groups;
  };
  int32_t groups = add_level(static_cast<int32_t>(hosts.size()));
  for (int32_t t = 0; t <= *std::ranges::max_element(tier) && groups > 1; ++t) {
    // Joins switches of a triangle before others of their tier, so that closely joined switches become a
    // level of their own.
    for (const bool dense : {true, false}) {
      for (const Link& link : topology.spec().links) {
        const int32_t from = tier[link.from.index()], to = tier[link.to.index()];
        if (from < 0 || to < 0 || std::max(from, to) != t) continue;
        if (joined.Find(link.from.value) == joined.Find(link.to.value)) continue;
        if (!dense || (from == to && HaveCommon(near[link.from.index()], near[link.to.index()])))
          joined.Join(link.from.value, link.to.value);
      }
      groups = add_level(groups);
    }
  }
  return levels;
}

namespace {

int32_t LanesOf(const RailHost& host, int64_t bandwidth) {
  int64_t lanes = 0;
  for (const Port& port : host.ports) lanes += port.bandwidth_bytes_per_s / bandwidth;
  return static_cast<int32_t>(std::min<int64_t>(lanes, std::numeric_limits<int32_t>::max()));
}

constexpr int32_t kMostLanes = 64;  // of a host; more lanes cost more transfers than they gain bandwidth

}  // namespace

std::vector<LaneCut> LaneCuts(std::span<const RailHost> hosts) {
  std::set<int64_t> bandwidths;
  for (const RailHost& host : hosts)
    for (const Port& port : host.ports)
      for (int64_t shares : {1, 2}) bandwidths.insert(port.bandwidth_bytes_per_s / shares);
  std::vector<LaneCut> cuts;
  for (int64_t bandwidth : bandwidths) {
    if (bandwidth == 0) continue;
    int32_t lanes = std::numeric_limits<int32_t>::max();
    for (const RailHost& host : hosts) lanes = std::min(lanes, LanesOf(host, bandwidth));
    if (lanes >= 2) cuts.push_back({std::min(lanes, kMostLanes), bandwidth});
  }
  return cuts;
}

void SetLanes(const Topology& topology, const LaneCut& cut, std::vector<RailHost>& hosts) {
  const RailHost& fewest = *std::ranges::min_element(
      hosts, {}, [&](const RailHost& host) { return LanesOf(host, cut.bandwidth_bytes_per_s); });
  using Key = std::pair<std::string_view, int64_t>;  // id of a port's node, and the lane's number at the node
  // Calls visit(key, port) for the lanes that fit on the host's ports, at most cut.lanes of each port. A port
  // may be a billion times as fast as another.
  const auto for_lanes = [&](const RailHost& host, auto visit) {
    std::unordered_map<std::string_view, int64_t> seen;
    for (size_t p = 0; p < host.ports.size(); ++p) {
      const std::string_view id = topology.node(host.ports[p].node).id;
      const int64_t fit = host.ports[p].bandwidth_bytes_per_s / cut.bandwidth_bytes_per_s;
      for (int64_t i = 0; i < std::min<int64_t>(fit, cut.lanes); ++i)
        visit(Key(id, seen[id]++), static_cast<int32_t>(p));
    }
  };
  std::vector<Key> keys;
  for_lanes(fewest, [&](const Key& key, int32_t) {
    if (std::ssize(keys) < cut.lanes) keys.push_back(key);
  });
  for (RailHost& host : hosts) {
    host.lanes.assign(static_cast<size_t>(cut.lanes), -1);
    std::vector<int32_t> left;  // ports of lanes whose keys are not in `keys`
    for_lanes(host, [&](const Key& key, int32_t port) {
      const auto at = std::ranges::find(keys, key);
      if (at != keys.end())
        host.lanes[static_cast<size_t>(at - keys.begin())] = port;
      else
        left.push_back(port);
    });
    auto next = left.begin();
    for (int32_t& lane : host.lanes)
      if (lane < 0) lane = *next++;
  }
}

}  // namespace xccl
