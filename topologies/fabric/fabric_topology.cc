// Hosts are placed first (placed_hosts.cc); then switches and cables are added. Rates of cables between
// switches that the file leaves out are worked out from the hosts upwards, level by level. Linear, except for
// the switches that a job needs (job.h).
#include "topologies/fabric/fabric_topology.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/fabric/damage.h"
#include "topologies/fabric/fabric_hosts.h"
#include "topologies/fabric/host_list.h"
#include "topologies/fabric/job.h"
#include "topologies/fabric/placed_hosts.h"
#include "topologies/families/host_copies.h"
#include "topologies/families/networks.h"
#include "topologies/safe_name.h"

namespace xccl {
namespace {

// Half of what two more switches add to a message of 64 B on InfiniBand: 3.7 us across leaves, 2.8 us under
// one leaf (DeepSeek-V3, arXiv 2505.09343).
constexpr int64_t kSwitchLinkLatencyPs = 450'000;
constexpr std::string_view kLatencySource =
    "1.3 us from NIC to switch (measured alpha published with TE-CCL), 0.45 us between switches (half of "
    "what "
    "DeepSeek-V3's paper measures across leaves, arXiv 2505.09343)";

// The switches' names as unique ids; of several of one name, each has its guid.
std::vector<std::string> SwitchIds(const Fabric& fabric) {
  std::map<std::string, int64_t> count;
  std::vector<std::string> ids;
  for (const FabricSwitch& s : fabric.switches) {
    ids.push_back(s.name.empty() ? "switch" : SafeName(s.name));
    ++count[ids.back()];
  }
  UniqueNames names;
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint64_t guid = fabric.switches[i].guid;
    ids[i] = names.Take(count[ids[i]] > 1 && guid != 0 ? fmt::format("{}-{:016x}", ids[i], guid) : ids[i]);
  }
  return ids;
}

class FabricBuilder {
 public:
  FabricBuilder(const Fabric& fabric, std::string_view file, PlacedHosts hosts, const FabricOptions& options)
      : fabric_(fabric),
        file_(file),
        nics_(std::move(hosts.nics)),
        options_(options),
        spec_(std::move(hosts.spec)) {}

  StatusOr<Topology> Build() {
    for (const std::string& id : SwitchIds(fabric_))
      switches_.push_back(AddNode(NodeKind::kSwitch, id, std::nullopt, spec_));
    AddCables();
    kept_.assign(spec_.nodes.size(), true);
    if (options_.job) kept_ = NodesInUse(spec_);
    SayDamage();
    if (options_.job) KeepNodes(kept_, spec_);
    spec_.name = std::filesystem::path(file_).stem().string();
    spec_.source =
        fmt::format("{} ({}){}{}; {}", std::filesystem::path(file_).filename().string(), fabric_.format,
                    spec_.source.empty() ? "" : "; hosts: ", spec_.source, kLatencySource);
    spec_.warnings.insert(spec_.warnings.end(), fabric_.warnings.begin(), fabric_.warnings.end());
    StatusOr<Topology> topology = Topology::Create(std::move(spec_));
    if (!topology.ok()) return Annotate(topology.status(), file_);
    return topology;
  }

 private:
  // A cable of the machine: one of the file, or one of several that a whole host's cable stands for.
  struct Wire {
    NodeId a, b;
    int64_t bandwidth_bytes_per_s = 0;  // 0: to be guessed
    bool at_host = false;
  };

  // The NICs of a host under one adapter are spread over its cables.
  std::vector<PlacedNic> EndsOf(const FabricEnd& end, int32_t cable) {
    if (end.is_switch) return {{switches_[static_cast<size_t>(end.index)], 0}};
    const std::vector<PlacedNic>& nics = nics_[static_cast<size_t>(end.index)];
    if (nics.size() < 2) return nics;
    const std::vector<int32_t>& cables = cables_of_[static_cast<size_t>(end.index)];
    const auto place = static_cast<size_t>(std::ranges::find(cables, cable) - cables.begin());
    std::vector<PlacedNic> ends;
    for (size_t i = place; i < nics.size(); i += cables.size()) ends.push_back(nics[i]);
    return ends;
  }

  void AddCables() {
    cables_of_.resize(fabric_.adapters.size());
    for (size_t c = 0; c < fabric_.cables.size(); ++c)
      for (const FabricEnd& end : {fabric_.cables[c].a, fabric_.cables[c].b})
        if (!end.is_switch) cables_of_[static_cast<size_t>(end.index)].push_back(static_cast<int32_t>(c));
    std::vector<Wire> wires;
    for (size_t c = 0; c < fabric_.cables.size(); ++c) {
      const FabricCable& cable = fabric_.cables[c];
      for (const PlacedNic& a : EndsOf(cable.a, static_cast<int32_t>(c)))
        for (const PlacedNic& b : EndsOf(cable.b, static_cast<int32_t>(c))) {
          Wire wire{a.node, b.node, cable.bandwidth_bytes_per_s, !cable.a.is_switch || !cable.b.is_switch};
          if (wire.a == wire.b) continue;
          if (wire.at_host && wire.bandwidth_bytes_per_s == 0)
            wire.bandwidth_bytes_per_s =
                options_.nic_bytes_per_s.value_or(std::max(a.bandwidth_bytes_per_s, b.bandwidth_bytes_per_s));
          wires.push_back(wire);
        }
    }
    if (std::ranges::count(wires, 0, &Wire::bandwidth_bytes_per_s) > 0) GuessRates(wires);
    for (const Wire& wire : wires)
      AddCable(wire.a, wire.b,
               {wire.bandwidth_bytes_per_s, wire.at_host ? kNicLinkLatencyPs : kSwitchLinkLatencyPs}, spec_);
  }

  // A switch is as many levels up as it is hops away from hosts. The cables up from a switch divide what
  // comes up into it. Cables within a level, and above no host, are as fast as the fastest NIC's.
  void GuessRates(std::vector<Wire>& wires) {
    const std::vector<int32_t> level = Levels(wires);
    std::vector<std::vector<Wire*>> up(spec_.nodes.size());  // by lower switch
    std::vector<int64_t> down(spec_.nodes.size(), 0);        // by switch: what comes up into it
    int64_t fastest = options_.nic_bytes_per_s.value_or(1), guessed = 0;
    for (Wire& wire : wires) {
      if (wire.at_host) {
        for (NodeId end : {wire.a, wire.b}) down[end.index()] += wire.bandwidth_bytes_per_s;
        fastest = std::max(fastest, wire.bandwidth_bytes_per_s);
      } else if (level[wire.a.index()] != level[wire.b.index()]) {
        up[(level[wire.a.index()] < level[wire.b.index()] ? wire.a : wire.b).index()].push_back(&wire);
      }
    }
    std::vector<NodeId> order = switches_;
    std::ranges::stable_sort(order, {}, [&](NodeId node) { return level[node.index()]; });
    for (NodeId node : order) {
      int64_t left = down[node.index()], unknown = 0;
      for (const Wire* wire : up[node.index()]) {
        left -= wire->bandwidth_bytes_per_s;
        unknown += wire->bandwidth_bytes_per_s == 0 ? 1 : 0;
      }
      for (Wire* wire : up[node.index()]) {
        if (wire->bandwidth_bytes_per_s == 0 && ++guessed > 0)
          wire->bandwidth_bytes_per_s = left > unknown ? left / unknown : fastest;
        const NodeId above = wire->a == node ? wire->b : wire->a;
        down[above.index()] += wire->bandwidth_bytes_per_s;
      }
    }
    for (Wire& wire : wires)
      if (wire.bandwidth_bytes_per_s == 0 && ++guessed > 0) wire.bandwidth_bytes_per_s = fastest;
    spec_.warnings.push_back(fmt::format(
        "{}: {} between switches without a rate: taken as non-blocking, as fast as the hosts below", file_,
        Counted(guessed, "cable")));
  }

  // By node: 0 for hosts, 1 for the switches at hosts.
  std::vector<int32_t> Levels(const std::vector<Wire>& wires) const {
    const auto far = static_cast<int32_t>(spec_.nodes.size());
    std::vector<int32_t> level(spec_.nodes.size(), far);
    std::vector<std::vector<NodeId>> next(spec_.nodes.size());
    std::vector<NodeId> queue;
    for (const Wire& wire : wires) {
      next[wire.a.index()].push_back(wire.b);
      next[wire.b.index()].push_back(wire.a);
      for (NodeId end : {wire.a, wire.b})
        if (spec_.nodes[end.index()].host && level[end.index()] != 0) {
          level[end.index()] = 0;
          queue.push_back(end);
        }
    }
    for (size_t i = 0; i < queue.size(); ++i)
      for (NodeId node : next[queue[i].index()])
        if (level[node.index()] == far) {
          level[node.index()] = level[queue[i].index()] + 1;
          queue.push_back(node);
        }
    return level;
  }

  bool IsKept(const FabricEnd& end) const {
    if (end.is_switch) return kept_[switches_[static_cast<size_t>(end.index)].index()];
    return !nics_[static_cast<size_t>(end.index)].empty();
  }

  // Damage of cables that are kept comes first, where it is not overlooked.
  void SayDamage() {
    Fabric kept = fabric_;
    std::erase_if(kept.cables, [&](const FabricCable& c) { return !IsKept(c.a) || !IsKept(c.b); });
    const std::vector<std::string> damage = DamageOf(kept, file_);
    spec_.warnings.insert(spec_.warnings.begin(), damage.begin(), damage.end());
  }

  const Fabric& fabric_;
  std::string file_;
  std::vector<std::vector<PlacedNic>> nics_;  // by adapter
  const FabricOptions& options_;
  TopologySpec spec_;
  std::vector<NodeId> switches_;                 // by switch of the fabric
  std::vector<std::vector<int32_t>> cables_of_;  // by adapter
  std::vector<bool> kept_;
};

// The hosts that the job or the list names, in its order.
StatusOr<std::vector<FabricHost>> Chosen(std::vector<FabricHost> hosts, std::string_view file,
                                         const FabricOptions& options) {
  const auto take = [&](const std::vector<std::string>& names, std::string_view flag) -> Status {
    std::vector<std::string> all;
    for (const FabricHost& host : hosts) all.push_back(host.name);
    const StatusOr<std::vector<size_t>> found = FindHosts(names, all);
    if (!found.ok()) return Annotate(found.status(), fmt::format("{}: {}", flag, file));
    std::vector<FabricHost> taken;
    for (size_t host : *found) taken.push_back(std::move(hosts[host]));
    hosts = std::move(taken);
    return OkStatus();
  };
  if (options.listed) XCCL_RETURN_IF_ERROR(take(*options.listed, "--hosts-file"));
  if (options.job) {
    const StatusOr<std::vector<std::string>> names = ExpandHostList(*options.job);
    if (!names.ok()) return UsageError("--job: " + names.status().message());
    XCCL_RETURN_IF_ERROR(take(*names, "--job"));
  }
  return hosts;
}

}  // namespace

StatusOr<Topology> FabricTopology(const Fabric& fabric, std::string_view file, const FabricOptions& options) {
  std::vector<std::string> warnings;
  std::vector<FabricHost> all = HostsOf(fabric, file, warnings);
  if (all.empty())
    return InvalidInput(fmt::format(
        "{}: no cable of the {} leads to an adapter of a host; expected one or more", file, fabric.format));
  XCCL_ASSIGN_OR_RETURN(const std::vector<FabricHost> hosts, Chosen(std::move(all), file, options));
  const bool chosen = options.listed || options.job;
  XCCL_ASSIGN_OR_RETURN(PlacedHosts placed, options.rules.empty()
                                                ? PlaceAdapters(fabric, file, hosts, options)
                                                : PlaceKinds(fabric, file, hosts, options, chosen));
  if (!chosen) placed.spec.warnings.insert(placed.spec.warnings.end(), warnings.begin(), warnings.end());
  return FabricBuilder(fabric, file, std::move(placed), options).Build();
}

}  // namespace xccl
