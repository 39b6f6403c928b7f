#include "topologies/families/host_copies.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/strings.h"

namespace xccl {
namespace {

using DomainKey = std::pair<int32_t, const Topology*>;

// The switches that join GPUs alone: NVSwitches, in machines that say nothing of hidden ones.
std::vector<NodeId> SwitchesOfGpus(const Topology& topology) {
  std::vector<NodeId> switches;
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    const NodeId node(n);
    const auto is_gpu = [&](LinkId link) { return topology.IsGpu(topology.link(link).to); };
    if (topology.node(node).kind == NodeKind::kSwitch && !topology.Out(node).empty() &&
        std::ranges::all_of(topology.Out(node), is_gpu))
      switches.push_back(node);
  }
  return switches;
}

}  // namespace

HostCopies::HostCopies(std::span<const HostCopy> copies) {
  std::map<DomainKey, std::vector<size_t>> members;
  std::vector<DomainKey> domains;  // in the order of their first copies
  for (size_t h = 0; h < copies.size(); ++h) {
    std::vector<size_t>& of_domain = members[{copies[h].domain, copies[h].of}];
    if (of_domain.empty()) domains.emplace_back(copies[h].domain, copies[h].of);
    of_domain.push_back(h);
  }
  for (size_t h = 0; h < copies.size(); ++h) {
    const HostCopy& copy = copies[h];
    const bool alone = members[{copy.domain, copy.of}].size() == 1;
    all_.hosts.push_back(Host{copy.name});
    std::vector<NodeId>& nodes = nodes_.emplace_back();
    for (int32_t n = 0; n < copy.of->num_nodes(); ++n) {
      nodes.emplace_back(static_cast<int64_t>(all_.nodes.size()));
      if (!alone && std::ranges::find(copy.shared, NodeId(n)) != copy.shared.end()) continue;
      all_.nodes.push_back(copy.of->node(NodeId(n)));
      all_.nodes.back().host = HostId(static_cast<int64_t>(h));
    }
  }
  for (size_t d = 0; d < domains.size(); ++d) {
    const DomainKey& domain = domains[d];
    const std::vector<size_t>& hosts = members[domain];
    if (hosts.size() == 1) continue;
    for (NodeId node : copies[hosts.front()].shared) {
      const NodeId added(static_cast<int64_t>(all_.nodes.size()));
      Node& shared = all_.nodes.emplace_back(domain.second->node(node));
      shared.host.reset();
      if (domains.size() > 1) shared.id += std::to_string(d);
      for (size_t h : hosts) nodes_[h][node.index()] = added;
    }
  }
  for (size_t h = 0; h < copies.size(); ++h)
    for (Link link : copies[h].of->spec().links) {
      link.from = Copy(h, link.from);
      link.to = Copy(h, link.to);
      all_.links.push_back(link);
    }
}

StatusOr<std::vector<NodeId>> SwitchesOfDomain(const Topology& topology, const HostFacts& facts,
                                               std::optional<int32_t> nvlink_domain) {
  std::vector<NodeId> switches;
  if (facts.domain_nvswitch)
    switches = {*facts.domain_nvswitch};
  else if (nvlink_domain)
    switches = SwitchesOfGpus(topology);
  const auto bad = [&](std::string_view why) {
    return UsageError(fmt::format("--nvlink-domain {}: {}", *nvlink_domain, why));
  };
  if (nvlink_domain && switches.empty())
    return bad(fmt::format("{} has no switch between GPUs alone that hosts could share", topology.name()));
  if (nvlink_domain && *nvlink_domain < topology.num_ranks())
    return bad(fmt::format("expected at least the {} of one host", Counted(topology.num_ranks(), "GPU")));
  return switches;
}

}  // namespace xccl
