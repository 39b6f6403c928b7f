// Validation, and adjacency in compressed rows. All is linear in nodes + links, but for the sorting of hosts.
#include "topologies/topology.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <tuple>
#include <unordered_set>

#include "base/strings.h"
#include "base/units.h"

namespace xccl {
namespace {

// Sums of bandwidths over any set of links stay below the limit of flows (base/graph/min_cut.h).
constexpr int64_t kMaxTotalBytesPerS = 2000 * kMaxBandwidthBytesPerS;

Grouped<LinkId> LinksByEnd(const TopologySpec& spec, NodeId Link::*end) {
  return GroupItems<LinkId>(spec.nodes.size(), [&](auto add) {
    for (size_t l = 0; l < spec.links.size(); ++l)
      add((spec.links[l].*end).value, LinkId(static_cast<int64_t>(l)));
  });
}

Status CheckLinks(const Topology& topology) {
  const int32_t nodes = topology.num_nodes();
  int64_t total = 0;
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.link(LinkId(l));
    const auto bad = [&](std::string_view why) {
      return InvalidInput(fmt::format("{}: link {}: {}", topology.name(), l, why));
    };
    for (NodeId end : {link.from, link.to})
      if (end.value < 0 || end.value >= nodes)
        return bad(fmt::format("no node {}; nodes are 0..{}", end.value, nodes - 1));
    if (link.from == link.to)
      return bad(fmt::format("joins {} to itself; expected two nodes", topology.NodeName(link.from)));
    if (link.bandwidth_bytes_per_s <= 0)
      return bad(fmt::format("bandwidth {} B/s; expected more than zero", link.bandwidth_bytes_per_s));
    if (link.bandwidth_bytes_per_s > kMaxBandwidthBytesPerS)
      return bad(fmt::format("bandwidth {}; expected at most {}", FormatBandwidth(link.bandwidth_bytes_per_s),
                             FormatBandwidth(kMaxBandwidthBytesPerS)));
    if (link.latency_ps < 0 || link.overhead_ps < 0)
      return bad("a latency or overhead below zero; expected zero or more");
    if (const int64_t longer = std::max(link.latency_ps, link.overhead_ps); longer > kMaxLatencyPs)
      return bad(fmt::format("{} of latency or overhead; expected at most {}", FormatDuration(longer),
                             FormatDuration(kMaxLatencyPs)));
    total += link.bandwidth_bytes_per_s;
    if (total > kMaxTotalBytesPerS)
      return InvalidInput(fmt::format("{}: links 0..{} have more than {} together; expected less in all",
                                      topology.name(), l, FormatBandwidth(kMaxTotalBytesPerS)));
  }
  return OkStatus();
}

// By character: true for the characters that references use, blanks and controls.
constexpr std::array<bool, 256> kNotInNames = [] {
  std::array<bool, 256> table{};
  for (size_t c = 0; c <= ' '; ++c) table[c] = true;
  for (const char c : std::string_view("/,*<>\"\x7f")) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

using NodeKey = std::tuple<std::optional<HostId>, NodeKind, std::string_view>;  // unique by node

struct NodeKeyHash {
  size_t operator()(const NodeKey& key) const {
    const auto& [host, kind, id] = key;
    const size_t place = (host ? host->index() + 1 : 0) * std::size(kNodeKinds) + static_cast<size_t>(kind);
    return std::hash<std::string_view>()(id) ^ place * 0x9e3779b97f4a7c15u;
  }
};

// Checks that ids are unique within (host, kind), host names are unique, and all are well formed.
Status CheckNames(const TopologySpec& spec) {
  std::vector<std::string_view> hosts;
  for (const Host& host : spec.hosts) {
    if (const Status good = CheckNodeName(host.name); !good.ok())
      return InvalidInput(fmt::format("{}: host {}", spec.name, good.message()));
    hosts.push_back(host.name);
  }
  std::sort(hosts.begin(), hosts.end());
  if (const auto twice = std::adjacent_find(hosts.begin(), hosts.end()); twice != hosts.end())
    return InvalidInput(fmt::format("{}: two hosts named {}; expected names that differ", spec.name, *twice));
  std::unordered_set<NodeKey, NodeKeyHash> taken;
  taken.reserve(spec.nodes.size());
  for (const Node& node : spec.nodes) {
    if (const Status good = CheckNodeName(node.id); !good.ok())
      return InvalidInput(fmt::format("{}: {} {}", spec.name, NodeKindName(node.kind), good.message()));
    if (!taken.emplace(node.host, node.kind, node.id).second)
      return InvalidInput(fmt::format("{}: two nodes named {} {}; expected ids that differ", spec.name,
                                      NodeKindName(node.kind), node.id));
  }
  return OkStatus();
}

}  // namespace

std::string_view NodeKindName(NodeKind kind) {
  switch (kind) {
    case NodeKind::kGpu:
      return "gpu";
    case NodeKind::kSwitch:
      return "switch";
    case NodeKind::kNic:
      return "nic";
    case NodeKind::kCpu:
      return "cpu";
  }
  return "";
}

Status CheckNodeName(std::string_view name) {
  if (name.empty()) return InvalidInput("'': expected a name");
  if (const size_t at = ValidUtf8Length(name); at < name.size())
    return InvalidInput(fmt::format("'{}': byte {:#04x}; expected UTF-8 text", ReplaceBadUtf8(name),
                                    static_cast<unsigned char>(name[at])));
  const bool bad =
      std::ranges::any_of(name, [](char c) { return kNotInNames[static_cast<unsigned char>(c)]; }) ||
      name.find("..") != std::string_view::npos;
  if (!bad) return OkStatus();
  return InvalidInput(fmt::format(
      "'{}': expected a name without '/', ',', '*', '<', '>', '\"', '..' and blanks", Shortened(name)));
}

Status CheckGpuArch(std::string_view arch) {
  const std::string_view number =
      arch.starts_with("sm") ? arch.substr(2) : arch.substr(std::min<size_t>(arch.size(), 3));
  const std::string_view digits = arch.starts_with("sm") ? "0123456789" : "0123456789abcdef";
  constexpr size_t kMostDigits = 8;
  if ((arch.starts_with("sm") || arch.starts_with("gfx")) && !number.empty() &&
      number.size() <= kMostDigits && number.find_first_not_of(digits) == std::string_view::npos)
    return OkStatus();
  return InvalidInput(fmt::format("arch '{}': expected an architecture of GPUs such as sm90 or gfx942",
                                  Shortened(ReplaceBadUtf8(arch))));
}

StatusOr<Topology> Topology::Create(TopologySpec spec) {
  Topology topology;
  topology.spec_ = std::move(spec);
  TopologySpec& own = topology.spec_;
  own.name = ReplaceBadUtf8(own.name);
  own.source = ReplaceBadUtf8(own.source);
  for (size_t n = 0; n < own.nodes.size(); ++n) {
    Node& node = own.nodes[n];
    if (node.kind == NodeKind::kGpu && !node.host) {
      if (own.hosts.empty()) own.hosts.push_back(Host{"host"});
      node.host = HostId(0);
    }
    if (node.host && (node.host->value < 0 || node.host->index() >= own.hosts.size()))
      return InvalidInput(fmt::format("{}: node {}: no host {}; there are {}", own.name, n, node.host->value,
                                      own.hosts.size()));
    if (node.kind == NodeKind::kGpu) {
      topology.node_rank_.push_back(Rank(static_cast<int64_t>(topology.rank_node_.size())));
      topology.rank_node_.push_back(NodeId(static_cast<int64_t>(n)));
    } else {
      topology.node_rank_.push_back(std::nullopt);
    }
  }
  if (topology.rank_node_.empty())
    return InvalidInput(fmt::format("{}: no gpu; expected at least one", own.name));
  if (!own.gpu_arch.empty())
    if (const Status arch = CheckGpuArch(own.gpu_arch); !arch.ok()) return Annotate(arch, own.name);
  XCCL_RETURN_IF_ERROR(CheckNames(own));
  XCCL_RETURN_IF_ERROR(CheckLinks(topology));
  topology.out_ = LinksByEnd(own, &Link::from);
  topology.in_ = LinksByEnd(own, &Link::to);
  return topology;
}

std::string Topology::NodeName(NodeId n) const {
  const Node& named = node(n);
  const bool show_host = named.host && num_hosts() > 1;
  return fmt::format("{} {}{}{}", NodeKindName(named.kind),
                     show_host ? spec_.hosts[named.host->index()].name : "", show_host ? "/" : "", named.id);
}

std::string Topology::LinkName(LinkId l) const {
  const auto end = [&](NodeId n) {
    const std::string name = NodeName(n);
    return name.substr(name.find(' ') + 1);
  };
  return end(link(l).from) + "->" + end(link(l).to);
}

}  // namespace xccl
