#include "topologies/families/modify.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/families/networks.h"
#include "topologies/references.h"

namespace xccl {
namespace {

constexpr int64_t kFabricLatencyPs = 1'300'000;

// Makes `hosts` copies, named h0, h1, ..., of a topology of one host. Every NIC of every copy is joined to
// one switch named "fabric". The new links have the bandwidth of the NIC's fastest link and a latency of
// 1.3 us (TE-CCL's measured alpha for InfiniBand). Errors: several hosts, no NIC, too many nodes.
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
      AddCable(NodeId(nic.value + int64_t{h} * topology.num_nodes()), fabric, {bandwidth, kFabricLatencyPs},
               all);
  return Topology::Create(std::move(all));
}

// The links that "A->B" or "A<->B" names.
StatusOr<std::vector<LinkId>> FindLinks(const Topology& topology, const NodeIndex& index,
                                        std::string_view text) {
  const size_t arrow = text.find("->");
  if (arrow == std::string_view::npos || arrow == 0)
    return UsageError(fmt::format("'{}': expected A->B, such as 0->1 or h0/gpu:3->h0/nvswitch", text));
  const bool both = text[arrow - 1] == '<';
  const std::string_view from_text = Trim(text.substr(0, both ? arrow - 1 : arrow));
  const std::string_view to_text = Trim(text.substr(arrow + 2));
  const auto nodes = [&](std::string_view reference) -> StatusOr<std::set<NodeId>> {
    const StatusOr<std::vector<NodeId>> found = index.Resolve(reference);
    if (!found.ok()) return InvalidInput(fmt::format("link {}: {}", text, found.status().message()));
    return std::set<NodeId>(found->begin(), found->end());
  };
  XCCL_ASSIGN_OR_RETURN(const std::set<NodeId> from, nodes(from_text));
  XCCL_ASSIGN_OR_RETURN(const std::set<NodeId> to, nodes(to_text));
  std::vector<LinkId> links;
  const auto collect = [&](const std::set<NodeId>& tails, const std::set<NodeId>& heads) {
    for (NodeId tail : tails)
      for (LinkId link : topology.Out(tail))
        if (heads.contains(topology.link(link).to)) links.push_back(link);
  };
  collect(from, to);
  if (both) collect(to, from);
  if (!links.empty()) return links;
  std::vector<std::string> names;
  for (LinkId link : topology.Out(*from.begin())) {
    const std::string name = index.Reference(topology.link(link).to);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.size() > 8) {
    names.resize(8);
    names.push_back("...");
  }
  return InvalidInput(fmt::format("link {}: no such link; {} has links to {}", text, from_text,
                                  names.empty() ? "nothing" : Join(names, ", ")));
}

Status Degrade(const Topology& topology, const NodeIndex& index, const std::string& text,
               TopologySpec& spec) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos)
    return UsageError(fmt::format("--degrade '{}': no factor; expected A->B=F, such as 0->1=0.5", text));
  const std::string_view factor = std::string_view(text).substr(equals + 1);
  const StatusOr<int64_t> billionths = ParseBillionths(factor);
  if (!billionths.ok() || *billionths == 0 || *billionths > 1'000'000'000)
    return UsageError(
        fmt::format("--degrade: factor '{}': expected a number above 0 and at most 1, such as 0.5", factor));
  const StatusOr<std::vector<LinkId>> links =
      FindLinks(topology, index, std::string_view(text).substr(0, equals));
  if (!links.ok()) return Annotate(links.status(), "--degrade");
  for (LinkId link : *links) {
    int64_t& bandwidth = spec.links[link.index()].bandwidth_bytes_per_s;
    bandwidth = static_cast<int64_t>(static_cast<__int128>(bandwidth) * *billionths / 1'000'000'000);
    if (bandwidth == 0)
      return InvalidInput(fmt::format("--degrade: link {}: less than 1 B/s is left; expected a larger factor",
                                      std::string_view(text).substr(0, equals)));
  }
  return OkStatus();
}

}  // namespace

StatusOr<Topology> Modify(Topology topology, const LoadOptions& options) {
  if (options.hosts) {
    XCCL_ASSIGN_OR_RETURN(topology, JoinHosts(topology, *options.hosts));
  }
  if (options.without_links.empty() && options.degrades.empty()) return topology;
  TopologySpec spec = topology.spec();
  NodeIndex index(topology.spec());
  index.Update();
  std::vector<bool> removed(spec.links.size());
  for (const std::string& text : options.without_links) {
    const StatusOr<std::vector<LinkId>> links = FindLinks(topology, index, text);
    if (!links.ok()) return Annotate(links.status(), "--without-link");
    for (LinkId link : *links) removed[link.index()] = true;
  }
  for (const std::string& text : options.degrades) XCCL_RETURN_IF_ERROR(Degrade(topology, index, text, spec));
  std::vector<Link> kept;
  for (size_t l = 0; l < spec.links.size(); ++l)
    if (!removed[l]) kept.push_back(spec.links[l]);
  spec.links = std::move(kept);
  return Topology::Create(std::move(spec));
}

}  // namespace xccl
