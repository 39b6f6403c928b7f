#include "topologies/fabric/placed_hosts.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/families/host_copies.h"
#include "topologies/families/host_nics.h"
#include "topologies/families/networks.h"
#include "topologies/safe_name.h"

namespace xccl {
namespace {

// The ports of one device are one NIC; so are those of one guid, where there is no device.
bool SameNic(const FabricAdapter& a, const FabricAdapter& b) {
  if (a.device.empty() && b.device.empty()) return a.guid != 0 && a.guid == b.guid;
  return a.device == b.device;
}

class Kinds {
 public:
  Kinds(const Fabric& fabric, std::string_view file, std::span<const FabricHost> hosts,
        const FabricOptions& options)
      : fabric_(fabric), file_(file), hosts_(hosts), options_(options) {}

  StatusOr<PlacedHosts> Place(bool chosen) {
    XCCL_RETURN_IF_ERROR(ReadKinds());
    XCCL_RETURN_IF_ERROR(ChooseKinds());
    MatchAll();
    if (!chosen) LeaveOutHostsWithFewNics();
    XCCL_RETURN_IF_ERROR(CheckCount());
    SayMatches();
    return Copy();
  }

 private:
  struct Placed {
    const FabricHost* host = nullptr;
    size_t kind = 0;
    NicMatch match;
    size_t cabled = 0;  // so many NICs have a cable
  };

  void Warn(std::string text) { warnings_.push_back(fmt::format("{}: {}", file_, text)); }

  Status ReadKinds() {
    for (const HostKind& kind : options_.kinds) {
      if (kind.topology.num_hosts() != 1)
        return InvalidInput(fmt::format("--host {}: has {} hosts; expected a machine of one host to copy",
                                        kind.name, kind.topology.num_hosts()));
      nics_.push_back(NicsToJoin(kind.topology, kind.facts, "--host " + kind.name, warnings_));
      if (nics_.back().empty())
        return InvalidInput(
            fmt::format("--host {}: has no nic to join to the fabric; expected a machine with NICs, such as "
                        "dgx-h100 or a dump of NCCL; hint: NCCL_TOPO_DUMP_FILE=FILE writes a dump",
                        kind.name));
      XCCL_ASSIGN_OR_RETURN(std::vector<NodeId> shared,
                            SwitchesOfDomain(kind.topology, kind.facts, options_.nvlink_domain));
      shared_.push_back(std::move(shared));
      for (const std::string& warning : kind.topology.spec().warnings) warnings_.push_back(warning);
    }
    for (size_t k = 0; k < nics_.size(); ++k)
      matchers_.emplace_back(options_.kinds[k], nics_[k], fabric_, hosts_);
    return OkStatus();
  }

  Status ChooseKinds() {
    std::vector<std::optional<HostPattern>> patterns;  // by rule; absent: all hosts
    for (const HostRule& rule : options_.rules) {
      patterns.emplace_back();
      if (rule.hosts.empty()) continue;
      StatusOr<HostPattern> pattern = HostPattern::Read(rule.hosts);
      if (!pattern.ok())
        return UsageError(fmt::format("--host {}={}: {}", rule.hosts, options_.kinds[rule.kind].name,
                                      pattern.status().message()));
      patterns.back() = *std::move(pattern);
    }
    std::vector<std::string> unnamed;
    for (const FabricHost& host : hosts_) {
      const auto rule = std::ranges::find_if(
          patterns, [&](const auto& pattern) { return !pattern || pattern->Names(host.name); });
      if (rule == patterns.end())
        unnamed.push_back(host.name);
      else
        placed_.push_back({&host, options_.rules[static_cast<size_t>(rule - patterns.begin())].kind, {}, 0});
    }
    if (placed_.empty())
      return InvalidInput(
          fmt::format("{}: no --host names any of its hosts ({}); expected one of them; hint: --host=DUMP is "
                      "for all hosts",
                      file_, SomeOf(unnamed)));
    if (!unnamed.empty())
      Warn(fmt::format("no --host names {} ({}): left out", Counted(std::ssize(unnamed), "host"),
                       SomeOf(unnamed)));
    return OkStatus();
  }

  void MatchAll() {
    for (Placed& placed : placed_) {
      placed.match = matchers_[placed.kind].Match(*placed.host);
      std::set<size_t> nics;
      for (const std::vector<size_t>& of_port : placed.match.nics)
        nics.insert(of_port.begin(), of_port.end());
      placed.cabled = nics.size();
    }
  }

  // Servers for storage and management have a fabric's adapters, too.
  void LeaveOutHostsWithFewNics() {
    std::map<size_t, size_t> most;
    for (const Placed& placed : placed_) most[placed.kind] = std::max(most[placed.kind], placed.cabled);
    std::vector<std::string> left_out;
    std::erase_if(placed_, [&](const Placed& placed) {
      if (placed.cabled * 2 > most[placed.kind]) return false;
      left_out.push_back(placed.host->name);
      return true;
    });
    if (!left_out.empty())
      Warn(fmt::format(
          "{} ({}) with at most half of the NICs of the hosts that have most: left out, as for "
          "storage or management; hint: --hosts-file=LIST or --job=HOSTS names the hosts that you mean",
          Counted(std::ssize(left_out), "host"), SomeOf(left_out)));
  }

  Status CheckCount() const {
    TopologySize size{std::ssize(fabric_.switches), 2 * std::ssize(fabric_.cables)};
    for (const Placed& placed : placed_) {
      size.nodes += options_.kinds[placed.kind].topology.num_nodes();
      size.links += options_.kinds[placed.kind].topology.num_links();
      if (placed.host->whole) size.links += 2 * std::ssize(nics_[placed.kind]);
    }
    return Annotate(CheckSize(size), file_);
  }

  void SayMatches() {
    std::map<NicRule, std::vector<std::string>> by_rule;
    std::map<std::string, std::vector<std::string>> strangers, idle;  // hosts by devices, by NICs
    for (const Placed& placed : placed_) {
      const std::string& host = placed.host->name;
      by_rule[placed.match.rule].push_back(host);
      std::vector<std::string> devices;
      std::set<size_t> cabled;
      for (size_t p = 0; p < placed.match.nics.size(); ++p) {
        const std::vector<size_t>& nics = placed.match.nics[p];
        cabled.insert(nics.begin(), nics.end());
        const FabricAdapter& adapter = AdapterOf(placed.host->ports[p]);
        if (nics.empty())
          devices.push_back(adapter.device.empty() ? fmt::format("{:#x}", adapter.guid) : adapter.device);
      }
      if (!devices.empty()) strangers[Join(devices, ", ")].push_back(host);
      std::vector<std::string> without;
      const HostKind& kind = options_.kinds[placed.kind];
      for (size_t i = 0; i < nics_[placed.kind].size(); ++i)
        if (!cabled.contains(i)) without.push_back(kind.topology.node(nics_[placed.kind][i].node).id);
      if (!without.empty()) idle[fmt::format("{} of {}", Join(without, ", "), kind.name)].push_back(host);
    }
    for (const auto& [rule, hosts] : by_rule)
      Warn(fmt::format("NICs are matched by {} on {} ({})", ToString(rule),
                       Counted(std::ssize(hosts), "host"), SomeOf(hosts)));
    for (const auto& [devices, hosts] : strangers)
      Warn(fmt::format("adapters that match no NIC, as for storage: {} on {} ({})", devices,
                       Counted(std::ssize(hosts), "host"), SomeOf(hosts)));
    for (const auto& [nics, hosts] : idle)
      Warn(fmt::format("NICs without a cable: {} on {} ({})", nics, Counted(std::ssize(hosts), "host"),
                       SomeOf(hosts)));
  }

  // The domain of each placed host; hosts in none have one of their own.
  std::vector<int32_t> Domains() {
    std::map<std::string, int32_t> named;
    for (size_t d = 0; d < fabric_.domains.size(); ++d)
      for (const std::string& host : fabric_.domains[d].hosts) named.emplace(host, static_cast<int32_t>(d));
    std::vector<int32_t> domains;
    auto next = static_cast<int32_t>(fabric_.domains.size());
    int64_t gpus = 0;
    for (const Placed& placed : placed_) {
      const int32_t ranks = options_.kinds[placed.kind].topology.num_ranks();
      if (shared_[placed.kind].empty()) {
        domains.push_back(next++);
      } else if (options_.nvlink_domain) {
        gpus = domains.empty() || gpus + ranks > *options_.nvlink_domain ? ranks : gpus + ranks;
        if (gpus == ranks) ++next;
        domains.push_back(next);
      } else {
        const auto known = named.find(placed.host->name);
        domains.push_back(known == named.end() ? next++ : known->second);
      }
    }
    const bool any = std::ranges::any_of(placed_, [&](const Placed& p) { return !shared_[p.kind].empty(); });
    if (any && named.empty() && !options_.nvlink_domain)
      Warn(
          "the file names no NVLink domains, so that each host keeps the NVSwitch of its domain to itself; "
          "hint: "
          "--nvlink-domain=72 joins hosts in their order");
    return domains;
  }

  StatusOr<PlacedHosts> Copy() {
    const std::vector<int32_t> domains = Domains();
    std::vector<HostCopy> copies;
    UniqueNames host_names;
    for (size_t h = 0; h < placed_.size(); ++h)
      copies.push_back({&options_.kinds[placed_[h].kind].topology,
                        host_names.Take(SafeName(placed_[h].host->name)), shared_[placed_[h].kind],
                        domains[h]});
    HostCopies made(copies);
    PlacedHosts result;
    result.nics.resize(fabric_.adapters.size());
    for (size_t h = 0; h < placed_.size(); ++h)
      for (size_t p = 0; p < placed_[h].match.nics.size(); ++p)
        for (size_t nic : placed_[h].match.nics[p]) {
          const HostNic& of = nics_[placed_[h].kind][nic];
          const auto adapter = static_cast<size_t>(placed_[h].host->ports[p].adapter);
          result.nics[adapter].push_back({made.Copy(h, of.node), of.bandwidth_bytes_per_s});
        }
    result.spec = std::move(made.all());
    std::set<std::string> sources, archs;
    for (const Placed& placed : placed_) {
      sources.insert(options_.kinds[placed.kind].topology.spec().source);
      archs.insert(options_.kinds[placed.kind].topology.gpu_arch());
    }
    if (archs.size() == 1) result.spec.gpu_arch = *archs.begin();
    result.spec.source = Join(std::vector<std::string>(sources.begin(), sources.end()), "; ");
    result.spec.warnings = std::move(warnings_);
    return result;
  }

  const FabricAdapter& AdapterOf(const FabricPort& port) const {
    return fabric_.adapters[static_cast<size_t>(port.adapter)];
  }

  const Fabric& fabric_;
  std::string file_;
  std::span<const FabricHost> hosts_;
  const FabricOptions& options_;
  std::vector<std::vector<HostNic>> nics_;   // by kind
  std::vector<std::vector<NodeId>> shared_;  // by kind
  std::deque<NicMatcher> matchers_;          // by kind
  std::vector<Placed> placed_;
  std::vector<std::string> warnings_;
};

}  // namespace

StatusOr<PlacedHosts> PlaceAdapters(const Fabric& fabric, std::string_view file,
                                    std::span<const FabricHost> hosts, const FabricOptions& options) {
  PlacedHosts result;
  result.nics.resize(fabric.adapters.size());
  const TopologySize size{std::ssize(fabric.switches) + 2 * std::ssize(fabric.adapters),
                          2 * std::ssize(fabric.cables) + 2 * std::ssize(fabric.adapters)};
  XCCL_RETURN_IF_ERROR(Annotate(CheckSize(size), file));
  UniqueNames host_names;
  for (const FabricHost& host : hosts) {
    std::vector<std::vector<const FabricPort*>> nics;
    const auto adapter = [&](const FabricPort& port) -> const FabricAdapter& {
      return fabric.adapters[static_cast<size_t>(port.adapter)];
    };
    for (const FabricPort& port : host.ports) {
      if (nics.empty() || !SameNic(adapter(*nics.back().front()), adapter(port))) nics.emplace_back();
      nics.back().push_back(&port);
    }
    const HostId id(std::ssize(result.spec.hosts));
    result.spec.hosts.push_back(Host{host_names.Take(SafeName(host.name))});
    std::vector<NodeId> gpus;
    for (size_t i = 0; i < nics.size(); ++i)
      gpus.push_back(AddNode(NodeKind::kGpu, std::to_string(i), id, result.spec));
    UniqueNames names;
    for (size_t i = 0; i < nics.size(); ++i) {
      const std::string device = SafeName(adapter(*nics[i].front()).device);
      const NodeId nic = AddNode(
          NodeKind::kNic, names.Take(device.empty() ? fmt::format("nic{}", i) : device), id, result.spec);
      LinkNumbers numbers{0, 0, 0};
      for (const FabricPort* port : nics[i])
        for (int32_t cable : port->cables) {
          const int64_t stated = fabric.cables[static_cast<size_t>(cable)].bandwidth_bytes_per_s;
          if (stated == 0 && !options.nic_bytes_per_s)
            return InvalidInput(
                fmt::format("{}: the file does not state the rate of its NICs; expected a flag; "
                            "hint: --nic-rate=400Gbit/s",
                            file));
          numbers.bandwidth_bytes_per_s += stated > 0 ? stated : *options.nic_bytes_per_s;
        }
      AddCable(gpus[i], nic, numbers, result.spec);
      for (const FabricPort* port : nics[i])
        result.nics[static_cast<size_t>(port->adapter)].push_back({nic, options.nic_bytes_per_s.value_or(0)});
    }
  }
  result.spec.warnings.push_back(fmt::format(
      "{}: each of {} stands for one GPU beside its NIC, and GPUs of a host meet only in the "
      "fabric; hint: --host=DUMP (of NCCL) or --host=dgx-h100 puts a host's own links in",
      file, Counted(std::ranges::count(result.spec.nodes, NodeKind::kGpu, &Node::kind), "adapter")));
  return result;
}

StatusOr<PlacedHosts> PlaceKinds(const Fabric& fabric, std::string_view file,
                                 std::span<const FabricHost> hosts, const FabricOptions& options,
                                 bool chosen) {
  return Kinds(fabric, file, hosts, options).Place(chosen);
}

}  // namespace xccl
