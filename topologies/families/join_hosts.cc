#include "topologies/families/join_hosts.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "topologies/families/attributes.h"
#include "topologies/families/host_copies.h"
#include "topologies/families/host_nics.h"
#include "topologies/families/networks.h"

namespace xccl {
namespace {

constexpr int64_t kDefaultNvlinkDomain = 72;  // GPUs of a GB200 NVL72 rack

// Reads --fabric. A ratio needs a second level of switches: spines over the rails, or one over a leaf a host.
StatusOr<Network> NetworkOf(const Topology& topology, const LoadOptions& options,
                            std::span<const HostNic> nics) {
  const std::optional<NamedRails> named = RailsOfFacts(nics);
  const std::string_view text = options.fabric ? std::string_view(*options.fabric) : "";
  std::vector<Attribute> attributes;
  if (Status read = ReadPairs(text, attributes); !read.ok())
    return UsageError(fmt::format("--fabric: {}", read.message()));
  const auto value = [&](std::string_view name) -> std::optional<std::string_view> {
    const auto found = std::ranges::find(attributes, name, &Attribute::first);
    return found == attributes.end() ? std::nullopt : std::optional(found->second);
  };
  if (!value("type") && !options.no_rails && (options.rails || named || SuitsRails(topology, nics)))
    attributes.emplace_back("type", "rails");
  const std::string leaves = std::to_string(*options.hosts);
  if (value("oversubscription") && value("type") == "rails" && !value("spines"))
    attributes.emplace_back("spines", "1");
  if (value("oversubscription") && !value("type"))
    attributes.insert(attributes.end(), {{"type", "leaf-spine"}, {"leaves", leaves}, {"spines", "1"}});
  const bool bandwidth = value("bandwidth").has_value();
  AttributeReader reader("fabric", std::move(attributes));
  const NetworkShape kind = ReadNetworkShape(reader);
  const int64_t fastest = std::ranges::max(nics, {}, &HostNic::bandwidth_bytes_per_s).bandwidth_bytes_per_s;
  // The ports of a NIC share its bandwidth.
  const int64_t ports = reader.Integer("planes", 1, kMaxNodes, 1);
  Network network = ReadNetwork(kind, reader, {std::max<int64_t>(1, fastest / ports), kNicLinkLatencyPs});
  ReadFabricAttributes(reader, network);
  if (network.oversubscription_num != 0 && HasOneLevel(network))
    reader.Fail("oversubscription without spines; expected spines of 1 or more");
  if (const Status read = reader.Finish(); !read.ok())
    return UsageError(fmt::format("--fabric: {}", read.message()));
  if ((kind == NetworkShape::kRails && options.no_rails) || (kind != NetworkShape::kRails && options.rails))
    return UsageError(
        fmt::format("--{}rails: not together with --fabric {}", options.no_rails ? "no-" : "", text));
  const auto own = static_cast<int64_t>(nics.size());
  if (own % network.rails != 0)
    return UsageError(
        fmt::format("--fabric: rails '{}': a host has {} nics; expected a multiple", network.rails, own));
  if (kind == NetworkShape::kRails || kind == NetworkShape::kFullMesh) network.leaves = own;
  if (kind == NetworkShape::kRails && named) {
    network.leaves = static_cast<int64_t>(named->names.size());
    network.rail_names = named->names;
    network.rail_of = named->of_nic;
  }
  if (!bandwidth)
    for (const HostNic& nic : nics)
      network.access_bytes_per_s.push_back(std::max<int64_t>(1, nic.bandwidth_bytes_per_s / ports));
  return network;
}

// Copies h0, h1, ...; so many that follow each other share the switches of their domain.
HostCopies CopiesOf(const Topology& topology, int32_t hosts, std::span<const NodeId> shared,
                    int32_t hosts_of_domain) {
  std::vector<HostCopy> copies;
  for (int32_t h = 0; h < hosts; ++h)
    copies.push_back({&topology, fmt::format("h{}", h), shared, h / hosts_of_domain});
  HostCopies all(copies);
  all.all().name = fmt::format("{}x {}", hosts, topology.name());
  all.all().source = topology.spec().source;
  all.all().gpu_arch = topology.gpu_arch();
  all.all().warnings = topology.spec().warnings;
  return all;
}

// The flag whose value makes no sense without --hosts.
std::string_view FlagWithoutHosts(const LoadOptions& options) {
  if (options.nvlink_domain) return "nvlink-domain";
  if (options.fabric) return "fabric";
  return options.no_rails ? "no-rails" : "rails";
}

}  // namespace

StatusOr<Topology> JoinHosts(const Topology& topology, const LoadOptions& options, const HostFacts& facts) {
  if (!options.hosts)
    return UsageError(fmt::format("--{}: only together with --hosts", FlagWithoutHosts(options)));
  const int32_t hosts = *options.hosts;
  const auto bad = [&](std::string_view why) {
    return InvalidInput(fmt::format("--hosts: {}; {} {}", hosts, topology.name(), why));
  };
  if (hosts < 1) return UsageError(fmt::format("--hosts: {}; expected 1 or more", hosts));
  if (topology.num_hosts() != 1)
    return bad(fmt::format("has {} hosts; expected a machine of one host to copy", topology.num_hosts()));
  std::vector<std::string> warnings;
  const std::vector<HostNic> nics = NicsToJoin(topology, facts, "--hosts", warnings);
  if (nics.empty())
    return bad("has no nic to join copies by; hint: add <nic> elements and their links to its XML");
  XCCL_ASSIGN_OR_RETURN(const std::vector<NodeId> shared,
                        SwitchesOfDomain(topology, facts, options.nvlink_domain));
  const int64_t gpus = shared.empty() ? 0 : options.nvlink_domain.value_or(kDefaultNvlinkDomain);
  const auto hosts_of_domain =
      static_cast<int32_t>(std::clamp<int64_t>(gpus / topology.num_ranks(), 1, hosts));
  XCCL_ASSIGN_OR_RETURN(const Network network, NetworkOf(topology, options, nics));
  const int64_t count = CappedProduct(static_cast<int64_t>(nics.size()), hosts);
  if (const Status fits = CheckNetwork(network, count); !fits.ok())
    return UsageError(fmt::format("--fabric: {}", fits.message()));
  const TopologySize more = SizeOf(network, count);
  const TopologySize size{CappedProduct(topology.num_nodes(), hosts) + more.nodes,
                          CappedProduct(topology.num_links(), hosts) + more.links};
  if (const Status fits = CheckSize(size); !fits.ok())
    return InvalidInput(fmt::format("--hosts: {}; {}", hosts, fits.message()));

  HostCopies copies = CopiesOf(topology, hosts, shared, hosts_of_domain);
  TopologySpec& all = copies.all();
  all.warnings.insert(all.warnings.end(), warnings.begin(), warnings.end());
  if (hosts_of_domain > 1 && !options.nvlink_domain)
    all.warnings.push_back(
        fmt::format("--hosts: one NVSwitch joins the GPUs of up to {} hosts, as in one NVLink domain of at "
                    "most {} GPUs; hint: "
                    "--nvlink-domain={} gives each host its own",
                    hosts_of_domain, kDefaultNvlinkDomain, topology.num_ranks()));
  std::vector<NodeId> endpoints;
  for (int32_t h = 0; h < hosts; ++h)
    for (const HostNic& nic : nics) endpoints.push_back(copies.Copy(static_cast<size_t>(h), nic.node));
  AddNetwork(network, endpoints, Place{}, all);
  return Topology::Create(std::move(all));
}

}  // namespace xccl
