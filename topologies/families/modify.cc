#include "topologies/families/modify.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/families/join_hosts.h"
#include "topologies/references.h"

namespace xccl {
namespace {

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
  return InvalidInput(fmt::format("link {}: no such link; {} has links to {}", text, from_text,
                                  names.empty() ? "nothing" : SomeOf(names)));
}

Status Degrade(const Topology& topology, const NodeIndex& index, const std::string& text,
               TopologySpec& spec) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos)
    return UsageError(fmt::format("--degrade '{}': no factor; expected A->B=F, such as 0->1=0.5", text));
  const std::string_view factor = std::string_view(text).substr(equals + 1);
  const StatusOr<int64_t> billionths = ParseBillionths(factor);
  if (!billionths.ok() || *billionths == 0 || *billionths > 1'000'000'000)
    return UsageError(fmt::format(
        "--degrade: factor '{}': expected a decimal above 0 and at most 1, such as 0.5 or 0.001", factor));
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

StatusOr<Topology> Modify(Topology topology, const LoadOptions& options, const HostFacts& facts) {
  if (options.hosts || options.rails || options.no_rails || options.fabric || options.nvlink_domain) {
    XCCL_ASSIGN_OR_RETURN(topology, JoinHosts(topology, options, facts));
  }
  if (options.without_links.empty() && options.degrades.empty() && !options.plain_switches) return topology;
  TopologySpec spec = topology.spec();
  if (options.plain_switches)
    for (Node& node : spec.nodes) node.multicast = node.reduce = false;
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
