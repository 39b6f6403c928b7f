// 1. PlacesOf gives each host with GPUs a place, and refines the classes of all other nodes: a class splits
//    while its nodes have neighbours in different sets of places.
// 2. FoldHosts joins all links from one place to another. A host's cable counts with no higher rate than that
//    at which the host's nearest GPUs reach it, for example over PCIe.
#include "synth/forest/folded_hosts.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace xccl::forest {
namespace {

struct Places {
  std::vector<int32_t> of_node;
  int32_t hosts = 0;  // the number of places that are hosts; they come first
  int32_t size = 0;   // the number of all places
};

// Returns places in the order of the first node of each: hosts first, then classes of other nodes.
Places PlacesOf(const Topology& machine) {
  Places places;
  std::vector<int32_t> of_host(static_cast<size_t>(machine.num_hosts()), -1);
  for (int32_t r = 0; r < machine.num_ranks(); ++r) {
    int32_t& host = of_host[machine.HostOf(Rank(r)).index()];
    if (host < 0) host = places.hosts++;
  }
  const auto nodes = static_cast<size_t>(machine.num_nodes());
  places.of_node.assign(nodes, places.hosts);
  for (size_t n = 0; n < nodes; ++n)
    if (const std::optional<HostId> host = machine.spec().nodes[n].host; host && of_host[host->index()] >= 0)
      places.of_node[n] = of_host[host->index()];
  for (places.size = places.hosts + 1;;) {
    std::vector<std::set<int32_t>> around(nodes);
    for (const Link& link : machine.spec().links) {
      around[link.from.index()].insert(2 * places.of_node[link.to.index()]);
      around[link.to.index()].insert(2 * places.of_node[link.from.index()] + 1);
    }
    std::map<std::pair<int32_t, std::set<int32_t>>, int32_t> classes;
    std::vector<int32_t> refined = places.of_node;
    for (size_t n = 0; n < nodes; ++n) {
      if (places.of_node[n] < places.hosts) continue;
      const auto next = static_cast<int32_t>(places.hosts + static_cast<int32_t>(classes.size()));
      refined[n] = classes.try_emplace({places.of_node[n], std::move(around[n])}, next).first->second;
    }
    const int32_t size = places.hosts + static_cast<int32_t>(classes.size());
    places.of_node = std::move(refined);
    if (size <= places.size) {
      places.size = size;
      return places;
    }
    places.size = size;
  }
}

// Returns the link with the bandwidth and the latency of its whole path, from the nearest GPUs at one end to
// the nearest GPUs at the other end. The bandwidth is 0 if a host at an end has no such GPU.
Link WithWays(const Topology& machine, const std::vector<NodeId>& place, int32_t hosts, const Link& link) {
  Link whole = link;
  const auto add = [&](NodeId node, Way way) {
    if (place[node.index()].value >= hosts) return;
    const NearGpus near = NearestGpus(machine, place, node, way);
    whole.bandwidth_bytes_per_s =
        near.gpus.empty() ? 0 : std::min(whole.bandwidth_bytes_per_s, near.bandwidth_bytes_per_s);
    whole.latency_ps += near.latency_ps;
  };
  add(link.from, Way::kOut);
  add(link.to, Way::kIn);
  return whole;
}

}  // namespace

NearGpus NearestGpus(const Topology& machine, const std::vector<NodeId>& place, NodeId node, Way way) {
  if (machine.IsGpu(node))
    return {.gpus = {{node, {}}}, .bandwidth_bytes_per_s = std::numeric_limits<int64_t>::max()};
  // The search goes from the node to the GPUs, the widest and then the nearest paths first.
  struct Label {
    int64_t bandwidth = 0, latency_ps = 0;
    LinkId via;
  };
  std::map<NodeId, Label> labels;
  std::set<std::tuple<int64_t, int64_t, NodeId>> open;  // (-bandwidth, latency, node)
  labels[node] = {std::numeric_limits<int64_t>::max(), 0, LinkId(0)};
  open.emplace(-labels[node].bandwidth, 0, node);
  NearGpus near;
  while (!open.empty()) {
    const auto [narrow, latency_ps, at] = *open.begin();
    open.erase(open.begin());
    if (machine.IsGpu(at)) {
      if (!near.gpus.empty() && (near.bandwidth_bytes_per_s != -narrow || near.latency_ps != latency_ps))
        break;
      near.bandwidth_bytes_per_s = -narrow;
      near.latency_ps = latency_ps;
      NearGpu& found = near.gpus.emplace_back(NearGpu{at, {}});
      for (NodeId back = at; back != node;) {
        const LinkId via = labels[back].via;
        found.path.push_back(via);
        back = way == Way::kOut ? machine.link(via).to : machine.link(via).from;
      }
      if (way == Way::kIn) std::reverse(found.path.begin(), found.path.end());
      continue;
    }
    for (const LinkId l : way == Way::kOut ? machine.In(at) : machine.Out(at)) {
      const Link& link = machine.link(l);
      const NodeId next = way == Way::kOut ? link.from : link.to;
      if (place[next.index()] != place[node.index()]) continue;
      const Label label{std::min(-narrow, link.bandwidth_bytes_per_s),
                        latency_ps + link.latency_ps + link.overhead_ps, l};
      const auto [it, is_first] = labels.try_emplace(next, label);
      if (!is_first) {
        if (std::pair(-it->second.bandwidth, it->second.latency_ps) <=
            std::pair(-label.bandwidth, label.latency_ps))
          continue;
        open.erase({-it->second.bandwidth, it->second.latency_ps, next});
        it->second = label;
      }
      open.emplace(-label.bandwidth, label.latency_ps, next);
    }
  }
  return near;
}

std::optional<FoldedHosts> FoldHosts(const Topology& machine) {
  const Places places = PlacesOf(machine);
  if (places.hosts < 2) return std::nullopt;
  std::vector<NodeId> place;
  for (const int32_t p : places.of_node) place.emplace_back(p);

  TopologySpec spec;
  spec.name = machine.name();
  for (int32_t p = 0; p < places.size; ++p) {
    Node node{.kind = p < places.hosts ? NodeKind::kGpu : NodeKind::kSwitch,
              .id = fmt::format("{}", p),
              .host = {}};
    if (p < places.hosts) {
      spec.hosts.push_back({fmt::format("h{}", p)});
      node.host = HostId(p);
    }
    spec.nodes.push_back(std::move(node));
  }
  std::map<std::pair<NodeId, NodeId>, Link> between;
  for (const Link& link : machine.spec().links) {
    const NodeId from = place[link.from.index()], to = place[link.to.index()];
    if (from == to) continue;
    const Link whole = WithWays(machine, place, places.hosts, link);
    if (whole.bandwidth_bytes_per_s == 0) continue;
    Link& sum = between.try_emplace({from, to}, Link{.from = from, .to = to}).first->second;
    sum.bandwidth_bytes_per_s += whole.bandwidth_bytes_per_s;
    sum.latency_ps = std::max(sum.latency_ps, whole.latency_ps);
    sum.overhead_ps = std::max(sum.overhead_ps, whole.overhead_ps);
  }
  for (const auto& [unused, link] : between) spec.links.push_back(link);
  StatusOr<Topology> topology = Topology::Create(std::move(spec));
  if (!topology.ok()) return std::nullopt;
  FoldedHosts folded{.topology = *std::move(topology), .host_of_rank = {}, .place = std::move(place)};
  for (int32_t r = 0; r < machine.num_ranks(); ++r)
    folded.host_of_rank.emplace_back(folded.place[machine.NodeOf(Rank(r)).index()].value);
  return folded;
}

}  // namespace xccl::forest
