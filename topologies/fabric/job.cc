// Switches in use: a breadth-first search from each switch at a host counts hops; then it goes back along all
// shortest paths from the other switches at hosts.
#include "topologies/fabric/job.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/graph/grouped.h"
#include "topologies/fabric/fabric_hosts.h"
#include "topologies/fabric/host_list.h"

namespace xccl {
namespace {

constexpr int32_t kFar = -1;

bool IsFabricSwitch(const Node& node) { return node.kind == NodeKind::kSwitch && !node.host; }

// Marks the switches on shortest paths from `first` to the `ends`.
void MarkPaths(const Grouped<NodeId>& next, const Grouped<NodeId>& before, NodeId first,
               const std::vector<NodeId>& ends, std::vector<bool>& marked) {
  std::vector<int32_t> hops(marked.size(), kFar);
  std::vector<NodeId> queue = {first};
  hops[first.index()] = 0;
  for (size_t i = 0; i < queue.size(); ++i)
    for (NodeId node : next[queue[i].value])
      if (hops[node.index()] == kFar) {
        hops[node.index()] = hops[queue[i].index()] + 1;
        queue.push_back(node);
      }
  std::vector<bool> on_path(marked.size(), false);
  std::vector<NodeId> back;
  const auto mark = [&](NodeId node) {
    if (on_path[node.index()]) return;
    on_path[node.index()] = marked[node.index()] = true;
    back.push_back(node);
  };
  for (NodeId end : ends)
    if (hops[end.index()] != kFar) mark(end);
  for (size_t i = 0; i < back.size(); ++i)
    for (NodeId node : before[back[i].value])
      if (hops[node.index()] != kFar && hops[node.index()] + 1 == hops[back[i].index()]) mark(node);
}

StatusOr<std::vector<size_t>> HostsOfJob(const Topology& topology, std::string_view hosts) {
  const StatusOr<std::vector<std::string>> names = ExpandHostList(hosts);
  if (!names.ok()) return UsageError("--job: " + names.status().message());
  std::vector<std::string> all;
  for (const Host& host : topology.spec().hosts) all.push_back(host.name);
  StatusOr<std::vector<size_t>> found = FindHosts(*names, all);
  if (!found.ok()) return Annotate(found.status(), "--job: " + topology.name());
  return found;
}

// By host: the switches at its NICs, or at its GPUs where there is no NIC.
std::vector<std::set<NodeId>> LeavesOfHosts(const Topology& topology) {
  const bool nics = std::ranges::any_of(topology.spec().nodes,
                                        [](const Node& node) { return node.kind == NodeKind::kNic; });
  std::vector<std::set<NodeId>> leaves(topology.spec().hosts.size());
  for (const Link& link : topology.spec().links) {
    const Node& from = topology.node(link.from);
    if (from.host && from.kind == (nics ? NodeKind::kNic : NodeKind::kGpu) &&
        IsFabricSwitch(topology.node(link.to)))
      leaves[from.host->index()].insert(link.to);
  }
  return leaves;
}

}  // namespace

std::vector<bool> NodesInUse(const TopologySpec& spec) {
  std::vector<bool> used(spec.nodes.size(), false), at_host(spec.nodes.size(), false);
  const auto between_switches = [&](NodeId Link::*from, NodeId Link::*to) {
    return GroupItems<NodeId>(spec.nodes.size(), [&](auto add) {
      for (const Link& link : spec.links)
        if (IsFabricSwitch(spec.nodes[link.from.index()]) && IsFabricSwitch(spec.nodes[link.to.index()]))
          add((link.*from).value, link.*to);
    });
  };
  for (const Link& link : spec.links)
    for (const auto& [a, b] : {std::pair(link.from, link.to), std::pair(link.to, link.from)})
      if (spec.nodes[a.index()].host && IsFabricSwitch(spec.nodes[b.index()])) at_host[b.index()] = true;
  const Grouped<NodeId> next = between_switches(&Link::from, &Link::to);
  const Grouped<NodeId> before = between_switches(&Link::to, &Link::from);
  std::vector<NodeId> ends;
  for (size_t n = 0; n < spec.nodes.size(); ++n) {
    used[n] = !IsFabricSwitch(spec.nodes[n]);
    if (at_host[n]) ends.emplace_back(static_cast<int64_t>(n));
  }
  for (NodeId end : ends) MarkPaths(next, before, end, ends, used);
  return used;
}

void KeepNodes(const std::vector<bool>& kept, TopologySpec& spec) {
  std::vector<NodeId> renamed(spec.nodes.size());
  std::vector<Node> nodes;
  for (size_t n = 0; n < spec.nodes.size(); ++n) {
    renamed[n] = NodeId(static_cast<int64_t>(nodes.size()));
    if (kept[n]) nodes.push_back(std::move(spec.nodes[n]));
  }
  std::erase_if(spec.links, [&](const Link& l) { return !kept[l.from.index()] || !kept[l.to.index()]; });
  for (Link& link : spec.links) {
    link.from = renamed[link.from.index()];
    link.to = renamed[link.to.index()];
  }
  spec.nodes = std::move(nodes);
}

StatusOr<Topology> TakeJob(const Topology& topology, std::string_view hosts) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<size_t> found, HostsOfJob(topology, hosts));
  const TopologySpec& whole = topology.spec();
  TopologySpec spec{.name = whole.name,
                    .source = whole.source,
                    .gpu_arch = whole.gpu_arch,
                    .hosts = {},
                    .nodes = {},
                    .links = {},
                    .warnings = whole.warnings};
  std::vector<std::vector<NodeId>> of_host(whole.hosts.size() + 1);  // the last: of none
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    const std::optional<HostId> host = topology.node(NodeId(n)).host;
    of_host[host ? host->index() : whole.hosts.size()].push_back(NodeId(n));
  }
  std::vector<std::optional<NodeId>> copy(whole.nodes.size());
  const auto add = [&](NodeId node, std::optional<HostId> host) {
    copy[node.index()] = NodeId(static_cast<int64_t>(spec.nodes.size()));
    spec.nodes.push_back(whole.nodes[node.index()]);
    spec.nodes.back().host = host;
  };
  for (size_t host : found) {
    for (NodeId node : of_host[host]) add(node, HostId(static_cast<int64_t>(spec.hosts.size())));
    spec.hosts.push_back(whole.hosts[host]);
  }
  for (NodeId node : of_host.back()) add(node, std::nullopt);
  for (Link link : whole.links) {
    if (!copy[link.from.index()] || !copy[link.to.index()]) continue;
    link.from = *copy[link.from.index()];
    link.to = *copy[link.to.index()];
    spec.links.push_back(link);
  }
  KeepNodes(NodesInUse(spec), spec);
  return Topology::Create(std::move(spec));
}

int32_t NumLeaves(const Topology& topology) {
  std::set<NodeId> all;
  for (const std::set<NodeId>& leaves : LeavesOfHosts(topology)) all.insert(leaves.begin(), leaves.end());
  return static_cast<int32_t>(all.size());
}

StatusOr<std::vector<std::string>> CloserHosts(const Topology& topology, std::string_view hosts) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<size_t> job, HostsOfJob(topology, hosts));
  std::vector<int32_t> ranks(topology.spec().hosts.size());
  for (int32_t r = 0; r < topology.num_ranks(); ++r) ++ranks[topology.HostOf(Rank(r)).index()];
  const std::set<size_t> own(job.begin(), job.end());
  const std::vector<std::set<NodeId>> leaves = LeavesOfHosts(topology);
  struct Group {
    std::vector<size_t> hosts;  // those of the job first
    size_t own = 0;
  };
  std::map<std::set<NodeId>, Group> by_leaves;
  for (const bool of_job : {true, false})
    for (size_t h = 0; h < leaves.size(); ++h) {
      if (own.contains(h) != of_job || ranks[h] != ranks[job.front()]) continue;
      Group& group = by_leaves[leaves[h]];
      group.hosts.push_back(h);
      group.own += of_job ? 1 : 0;
    }
  std::vector<Group> groups;
  for (auto& [unused, group] : by_leaves) groups.push_back(std::move(group));
  const auto order = [&](const Group& group) {
    return std::pair(std::min(group.hosts.size(), job.size()), group.own);
  };
  std::ranges::stable_sort(groups, std::greater<>(), order);
  std::vector<size_t> taken;
  for (const Group& group : groups)
    for (size_t h : group.hosts)
      if (taken.size() < job.size()) taken.push_back(h);
  std::ranges::sort(taken);
  std::vector<std::string> names;
  for (size_t h : taken) names.push_back(topology.spec().hosts[h].name);
  return names;
}

}  // namespace xccl
