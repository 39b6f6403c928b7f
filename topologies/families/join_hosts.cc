#include "topologies/families/join_hosts.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/families/attributes.h"
#include "topologies/families/networks.h"
#include "topologies/paths.h"

namespace xccl {
namespace {

constexpr int64_t kFabricLatencyPs = 1'300'000;
constexpr int64_t kManagementShare = 4;  // a NIC this many times slower than the fastest is for management

struct Nic {
  NodeId node;
  int64_t bandwidth_bytes_per_s = 0;  // of its fastest link
  bool gdr = true;
  std::vector<int32_t> links_to;  // by rank: the fewest links, through switches and CPUs; kFar: no such path
  bool direct = false;            // reaches a GPU without passing a CPU
};
constexpr int32_t kFar = INT32_MAX;

void FindGpusFrom(const Topology& topology, bool through_cpus, Nic& nic) {
  std::vector<bool> seen(static_cast<size_t>(topology.num_nodes()));
  std::vector<NodeId> frontier = {nic.node};
  seen[nic.node.index()] = true;
  for (int32_t links = 1; !frontier.empty(); ++links) {
    std::vector<NodeId> next;
    for (NodeId from : frontier)
      for (LinkId link : topology.Out(from)) {
        const NodeId to = topology.link(link).to;
        if (seen[to.index()]) continue;
        seen[to.index()] = true;
        const NodeKind kind = topology.node(to).kind;
        if (kind == NodeKind::kSwitch || (kind == NodeKind::kCpu && through_cpus)) next.push_back(to);
        if (kind != NodeKind::kGpu) continue;
        nic.links_to[topology.RankOf(to)->index()] = links;
        nic.direct = nic.direct || !through_cpus;
      }
    frontier.swap(next);
  }
}

// The NICs of a host, in document order.
std::vector<Nic> NicsOf(const Topology& topology, std::span<const NodeId> without_gdr) {
  std::vector<Nic> nics;
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    Nic nic{.node = NodeId(n),
            .links_to = std::vector<int32_t>(static_cast<size_t>(topology.num_ranks()), kFar)};
    if (topology.node(nic.node).kind != NodeKind::kNic) continue;
    for (LinkId link : topology.Out(nic.node))
      nic.bandwidth_bytes_per_s =
          std::max(nic.bandwidth_bytes_per_s, topology.link(link).bandwidth_bytes_per_s);
    if (nic.bandwidth_bytes_per_s == 0) continue;
    nic.gdr = std::ranges::find(without_gdr, nic.node) == without_gdr.end();
    FindGpusFrom(topology, false, nic);
    FindGpusFrom(topology, true, nic);
    nics.push_back(std::move(nic));
  }
  return nics;
}

// By NIC: the number of ranks that no other NIC is nearer to.
std::vector<int64_t> RanksNearest(std::span<const Nic> nics) {
  std::vector<int64_t> counts(nics.size());
  for (size_t r = 0; r < nics.front().links_to.size(); ++r) {
    int32_t least = kFar;
    for (const Nic& nic : nics) least = std::min(least, nic.links_to[r]);
    for (size_t i = 0; i < nics.size(); ++i) counts[i] += nics[i].links_to[r] == least ? 1 : 0;
  }
  return counts;
}

// The NICs to join; what is left out becomes a warning.
std::vector<Nic> NicsToJoin(const Topology& topology, std::span<const NodeId> without_gdr,
                            std::vector<std::string>& warnings) {
  std::vector<Nic> nics = NicsOf(topology, without_gdr);
  if (nics.empty()) return nics;
  const int64_t fastest = std::ranges::max(nics, {}, &Nic::bandwidth_bytes_per_s).bandwidth_bytes_per_s;
  std::vector<std::string> left_out;
  const auto leave_out = [&](const std::vector<bool>& which, std::string_view why) {
    std::vector<Nic> kept;
    for (size_t i = 0; i < nics.size(); ++i) {
      if (which[i])
        left_out.push_back(
            fmt::format("{} ({}, {})", topology.node(nics[i].node).id,
                        FormatBandwidthShort(static_cast<double>(nics[i].bandwidth_bytes_per_s)), why));
      else
        kept.push_back(nics[i]);
    }
    if (kept.size() < nics.size()) nics = std::move(kept);
  };
  std::vector<bool> which;
  const bool any_gdr = std::ranges::any_of(nics, &Nic::gdr);
  for (const Nic& nic : nics) which.push_back(any_gdr && !nic.gdr);
  leave_out(which, "no gdr");
  which.clear();
  for (const Nic& nic : nics) which.push_back(nic.bandwidth_bytes_per_s < fastest / kManagementShare);
  leave_out(which, "slow");
  which.clear();
  for (int64_t ranks : RanksNearest(nics)) which.push_back(ranks == 0);
  leave_out(which, "others are nearer to all GPUs");
  if (!left_out.empty())
    warnings.push_back(fmt::format("--hosts: the fabric leaves out {}; the fastest NIC has {}",
                                   Join(left_out, ", "), FormatBandwidthShort(static_cast<double>(fastest))));
  return nics;
}

// Each NIC is beside GPUs, or nearer to some than to others.
bool SuitsRails(const Topology& topology, std::span<const Nic> nics) {
  const std::vector<int64_t> ranks = RanksNearest(nics);
  for (size_t i = 0; i < nics.size(); ++i)
    if (!nics[i].direct && ranks[i] == topology.num_ranks()) return false;
  const auto all_reached = [](const std::vector<std::optional<int32_t>>& hops) {
    return std::ranges::all_of(hops, [](const auto& hop) { return hop.has_value(); });
  };
  return nics.size() > 1 && all_reached(RankHopsFrom(topology, Rank(0))) &&
         all_reached(RankHopsTo(topology, Rank(0)));
}

// Reads --fabric. A ratio needs a second level of switches: spines over the rails, or one over a leaf a host.
StatusOr<Network> NetworkOf(const Topology& topology, const LoadOptions& options, std::span<const Nic> nics) {
  const std::string_view text = options.fabric ? std::string_view(*options.fabric) : "";
  std::vector<Attribute> attributes;
  if (Status read = ReadPairs(text, attributes); !read.ok())
    return UsageError(fmt::format("--fabric: {}", read.message()));
  const auto value = [&](std::string_view name) -> std::optional<std::string_view> {
    const auto found = std::ranges::find(attributes, name, &Attribute::first);
    return found == attributes.end() ? std::nullopt : std::optional(found->second);
  };
  if (!value("type") && !options.no_rails && (options.rails || SuitsRails(topology, nics)))
    attributes.emplace_back("type", "rails");
  const std::string leaves = std::to_string(*options.hosts);
  if (value("oversubscription") && value("type") == "rails" && !value("spines"))
    attributes.emplace_back("spines", "1");
  if (value("oversubscription") && !value("type"))
    attributes.insert(attributes.end(), {{"type", "leaf-spine"}, {"leaves", leaves}, {"spines", "1"}});
  const bool bandwidth = value("bandwidth").has_value();
  AttributeReader reader("fabric", std::move(attributes));
  const NetworkKind kind = ReadNetworkKind(reader);
  const int64_t fastest = std::ranges::max(nics, {}, &Nic::bandwidth_bytes_per_s).bandwidth_bytes_per_s;
  Network network = ReadNetwork(kind, reader, {fastest, kFabricLatencyPs});
  if (const Status read = reader.Finish(); !read.ok())
    return UsageError(fmt::format("--fabric: {}", read.message()));
  if ((kind == NetworkKind::kRails && options.no_rails) || (kind != NetworkKind::kRails && options.rails))
    return UsageError(
        fmt::format("--{}rails: not together with --fabric {}", options.no_rails ? "no-" : "", text));
  if (kind == NetworkKind::kRails) network.leaves = static_cast<int64_t>(nics.size());
  if (!bandwidth)
    for (const Nic& nic : nics) network.access_bytes_per_s.push_back(nic.bandwidth_bytes_per_s);
  return network;
}

TopologySpec Copies(const TopologySpec& one, int32_t hosts) {
  TopologySpec all;
  all.name = fmt::format("{}x {}", hosts, one.name);
  all.source = one.source;
  all.gpu_arch = one.gpu_arch;
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
  return all;
}

}  // namespace

StatusOr<Topology> JoinHosts(const Topology& topology, const LoadOptions& options,
                             std::span<const NodeId> nics_without_gdr) {
  if (!options.hosts)
    return UsageError(fmt::format("--{}: only together with --hosts", options.fabric     ? "fabric"
                                                                      : options.no_rails ? "no-rails"
                                                                                         : "rails"));
  const int32_t hosts = *options.hosts;
  const auto bad = [&](std::string_view why) {
    return InvalidInput(fmt::format("--hosts {}: {} {}", hosts, topology.name(), why));
  };
  if (hosts < 1) return UsageError(fmt::format("--hosts {}: expected 1 or more", hosts));
  if (topology.num_hosts() != 1)
    return bad(fmt::format("has {} hosts; expected a machine of one host to copy", topology.num_hosts()));
  std::vector<std::string> warnings;
  const std::vector<Nic> nics = NicsToJoin(topology, nics_without_gdr, warnings);
  if (nics.empty())
    return bad("has no nic to join copies by; hint: add <nic> elements and their links to its XML");
  XCCL_ASSIGN_OR_RETURN(const Network network, NetworkOf(topology, options, nics));
  const int64_t count = CappedProduct(static_cast<int64_t>(nics.size()), hosts);
  if (const Status fits = CheckNetwork(network, count); !fits.ok())
    return UsageError(fmt::format("--fabric: {}", fits.message()));
  const TopologySize more = SizeOf(network, count);
  const TopologySize size{CappedProduct(topology.num_nodes(), hosts) + more.nodes,
                          CappedProduct(topology.num_links(), hosts) + more.links};
  if (const Status fits = CheckSize(size); !fits.ok())
    return InvalidInput(fmt::format("--hosts {}: {}", hosts, fits.message()));

  TopologySpec all = Copies(topology.spec(), hosts);
  all.warnings.insert(all.warnings.end(), warnings.begin(), warnings.end());
  std::vector<NodeId> endpoints;
  for (int32_t h = 0; h < hosts; ++h)
    for (const Nic& nic : nics)
      endpoints.push_back(NodeId(nic.node.value + static_cast<int64_t>(h) * topology.num_nodes()));
  AddNetwork(network, endpoints, Place{}, all);
  return Topology::Create(std::move(all));
}

}  // namespace xccl
