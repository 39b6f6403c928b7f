#include "topologies/families/join_hosts.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "topologies/families/networks.h"

namespace xccl {
namespace {

constexpr int64_t kFabricLatencyPs = 1'300'000;

}  // namespace

StatusOr<Topology> JoinHosts(const Topology& topology, int32_t hosts) {
  const TopologySpec& one = topology.spec();
  const auto bad = [&](std::string_view why) {
    return InvalidInput(fmt::format("--hosts {}: {} {}", hosts, topology.name(), why));
  };
  if (hosts < 1) return UsageError(fmt::format("--hosts {}: expected 1 or more", hosts));
  if (topology.num_hosts() != 1)
    return bad(fmt::format("has {} hosts; expected a machine of one host to copy", topology.num_hosts()));
  std::vector<std::pair<NodeId, int64_t>> nics;  // each with the bandwidth of its fastest link
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    if (topology.node(NodeId(n)).kind != NodeKind::kNic) continue;
    int64_t fastest = 0;
    for (LinkId link : topology.Out(NodeId(n)))
      fastest = std::max(fastest, topology.link(link).bandwidth_bytes_per_s);
    if (fastest > 0) nics.emplace_back(NodeId(n), fastest);
  }
  if (nics.empty())
    return bad("has no nic to join copies by; hint: add <nic> elements and their links to its XML");
  const TopologySize size{CappedProduct(topology.num_nodes(), hosts) + 1,
                          CappedProduct(topology.num_links() + 2 * static_cast<int64_t>(nics.size()), hosts)};
  if (const Status fits = CheckSize(size); !fits.ok())
    return InvalidInput(fmt::format("--hosts {}: {}", hosts, fits.message()));

  TopologySpec all;
  all.name = fmt::format("{}x {}", hosts, one.name);
  all.source = one.source;
  all.warnings = one.warnings;
  for (int32_t h = 0; h < hosts; ++h) {
    const auto first = static_cast<int64_t>(all.nodes.size());
    all.hosts.push_back(Host{fmt::format("h{}", h)});
    for (Node node : one.nodes) {
      node.host = HostId(h);
      all.nodes.push_back(std::move(node));
    }
    for (Link link : one.links) {
      link.from = NodeId(link.from.value + first);
      link.to = NodeId(link.to.value + first);
      all.links.push_back(link);
    }
  }
  const NodeId fabric = AddNode(NodeKind::kSwitch, "fabric", std::nullopt, all);
  for (int32_t h = 0; h < hosts; ++h)
    for (const auto& [nic, bandwidth] : nics)
      AddCable(NodeId(nic.value + int64_t{h} * topology.num_nodes()), fabric,
               {bandwidth, kFabricLatencyPs, 0}, all);
  return Topology::Create(std::move(all));
}

}  // namespace xccl
