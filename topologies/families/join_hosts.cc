#include "topologies/families/join_hosts.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "topologies/families/attributes.h"
#include "topologies/families/host_nics.h"
#include "topologies/families/networks.h"

namespace xccl {
namespace {

constexpr int64_t kFabricLatencyPs = 1'300'000;
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
  const NetworkKind kind = ReadNetworkKind(reader);
  const int64_t fastest = std::ranges::max(nics, {}, &HostNic::bandwidth_bytes_per_s).bandwidth_bytes_per_s;
  Network network = ReadNetwork(kind, reader, {fastest, kFabricLatencyPs});
  if (const Status read = reader.Finish(); !read.ok())
    return UsageError(fmt::format("--fabric: {}", read.message()));
  if ((kind == NetworkKind::kRails && options.no_rails) || (kind != NetworkKind::kRails && options.rails))
    return UsageError(
        fmt::format("--{}rails: not together with --fabric {}", options.no_rails ? "no-" : "", text));
  if (kind == NetworkKind::kRails) network.leaves = static_cast<int64_t>(nics.size());
  if (kind == NetworkKind::kRails && named) {
    network.leaves = static_cast<int64_t>(named->names.size());
    network.rail_names = named->names;
    network.rail_of = named->of_nic;
  }
  if (!bandwidth)
    for (const HostNic& nic : nics) network.access_bytes_per_s.push_back(nic.bandwidth_bytes_per_s);
  return network;
}

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

// The switches that hosts of one NVLink domain have together, and how many hosts that is.
struct Domain {
  std::vector<NodeId> switches;
  int32_t hosts = 1;
};

StatusOr<Domain> DomainOf(const Topology& topology, const LoadOptions& options, const HostFacts& facts) {
  Domain domain;
  if (facts.domain_nvswitch)
    domain.switches = {*facts.domain_nvswitch};
  else if (options.nvlink_domain)
    domain.switches = SwitchesOfGpus(topology);
  const auto bad = [&](std::string_view why) {
    return UsageError(fmt::format("--nvlink-domain {}: {}", *options.nvlink_domain, why));
  };
  if (options.nvlink_domain && domain.switches.empty())
    return bad(fmt::format("{} has no switch between GPUs alone that hosts could share", topology.name()));
  if (options.nvlink_domain && *options.nvlink_domain < topology.num_ranks())
    return bad(fmt::format("expected at least the {} of one host", Counted(topology.num_ranks(), "GPU")));
  const int64_t gpus = options.nvlink_domain.value_or(kDefaultNvlinkDomain);
  if (!domain.switches.empty())
    domain.hosts = static_cast<int32_t>(std::clamp<int64_t>(gpus / topology.num_ranks(), 1, *options.hosts));
  return domain;
}

// Copies of a host. The copies of a domain share its switches, which then are in no host.
class HostCopies {
 public:
  HostCopies(const Topology& topology, int32_t hosts, const Domain& domain)
      : one_(topology.spec()), hosts_(hosts), domain_(domain) {
    for (NodeId node : domain.switches) shared_.insert(node);
    all_.name = fmt::format("{}x {}", hosts, one_.name);
    all_.source = one_.source;
    all_.gpu_arch = one_.gpu_arch;
    all_.warnings = one_.warnings;
    for (int32_t h = 0; h < hosts; ++h) AddHostNodes(h);
    for (int32_t h = 0; h < hosts; h += domain.hosts) AddDomainNodes(h);
    for (int32_t h = 0; h < hosts; ++h) AddLinks(h);
  }

  NodeId Copy(int32_t host, NodeId node) const { return copies_[host][node.index()]; }
  TopologySpec& all() { return all_; }

 private:
  // One host alone keeps its switches to itself.
  int32_t HostsOfDomain(int32_t first) const { return std::min(domain_.hosts, hosts_ - first); }

  void AddHostNodes(int32_t h) {
    all_.hosts.push_back(Host{fmt::format("h{}", h)});
    std::vector<NodeId>& copies = copies_.emplace_back();
    const bool alone = HostsOfDomain(h - h % domain_.hosts) == 1;
    for (size_t n = 0; n < one_.nodes.size(); ++n) {
      copies.emplace_back(static_cast<int64_t>(all_.nodes.size()));
      if (!alone && shared_.contains(NodeId(static_cast<int64_t>(n)))) continue;
      all_.nodes.push_back(one_.nodes[n]);
      all_.nodes.back().host = HostId(h);
    }
  }

  void AddDomainNodes(int32_t first) {
    const int32_t count = HostsOfDomain(first);
    if (count == 1) return;
    for (NodeId node : domain_.switches) {
      const NodeId added(static_cast<int64_t>(all_.nodes.size()));
      Node& copy = all_.nodes.emplace_back(one_.nodes[node.index()]);
      copy.host.reset();
      if (domain_.hosts < hosts_) copy.id += std::to_string(first / domain_.hosts);
      for (int32_t h = first; h < first + count; ++h) copies_[h][node.index()] = added;
    }
  }

  void AddLinks(int32_t h) {
    for (Link link : one_.links) {
      link.from = Copy(h, link.from);
      link.to = Copy(h, link.to);
      all_.links.push_back(link);
    }
  }

  const TopologySpec& one_;
  int32_t hosts_;
  const Domain& domain_;
  std::set<NodeId> shared_;
  std::vector<std::vector<NodeId>> copies_;  // by host and node of the one
  TopologySpec all_;
};

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
    return InvalidInput(fmt::format("--hosts {}: {} {}", hosts, topology.name(), why));
  };
  if (hosts < 1) return UsageError(fmt::format("--hosts {}: expected 1 or more", hosts));
  if (topology.num_hosts() != 1)
    return bad(fmt::format("has {} hosts; expected a machine of one host to copy", topology.num_hosts()));
  std::vector<std::string> warnings;
  const std::vector<HostNic> nics = NicsToJoin(topology, facts, warnings);
  if (nics.empty())
    return bad("has no nic to join copies by; hint: add <nic> elements and their links to its XML");
  XCCL_ASSIGN_OR_RETURN(const Domain domain, DomainOf(topology, options, facts));
  XCCL_ASSIGN_OR_RETURN(const Network network, NetworkOf(topology, options, nics));
  const int64_t count = CappedProduct(static_cast<int64_t>(nics.size()), hosts);
  if (const Status fits = CheckNetwork(network, count); !fits.ok())
    return UsageError(fmt::format("--fabric: {}", fits.message()));
  const TopologySize more = SizeOf(network, count);
  const TopologySize size{CappedProduct(topology.num_nodes(), hosts) + more.nodes,
                          CappedProduct(topology.num_links(), hosts) + more.links};
  if (const Status fits = CheckSize(size); !fits.ok())
    return InvalidInput(fmt::format("--hosts {}: {}", hosts, fits.message()));

  HostCopies copies(topology, hosts, domain);
  TopologySpec& all = copies.all();
  all.warnings.insert(all.warnings.end(), warnings.begin(), warnings.end());
  if (domain.hosts > 1 && !options.nvlink_domain)
    all.warnings.push_back(
        fmt::format("--hosts: one NVSwitch joins the GPUs of up to {} hosts, as in one NVLink domain of at "
                    "most {} GPUs; hint: "
                    "--nvlink-domain={} gives each host its own",
                    domain.hosts, kDefaultNvlinkDomain, topology.num_ranks()));
  std::vector<NodeId> endpoints;
  for (int32_t h = 0; h < hosts; ++h)
    for (const HostNic& nic : nics) endpoints.push_back(copies.Copy(h, nic.node));
  AddNetwork(network, endpoints, Place{}, all);
  return Topology::Create(std::move(all));
}

}  // namespace xccl
