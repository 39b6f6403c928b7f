// The distances of one NIC are a search over its host that counts CPUs first and switches second.
#include "topologies/families/host_nics.h"

#include <fmt/core.h>

#include <algorithm>
#include <compare>
#include <functional>
#include <map>
#include <queue>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/paths.h"

namespace xccl {
namespace {

constexpr int64_t kManagementShare = 4;  // a NIC this many times slower than the fastest is for management

struct Between {
  int32_t cpus = 0, switches = 0;
  auto operator<=>(const Between&) const = default;
};

NicDistance DistanceOf(const Between& between) {
  if (between.cpus > 0) return between.cpus == 1 ? NicDistance::kCpu : NicDistance::kCpus;
  return between.switches <= 1 ? NicDistance::kSwitch : NicDistance::kSwitches;
}

// By rank.
std::vector<NicDistance> DistancesFrom(const Topology& topology, const HostFacts& facts, NodeId nic) {
  std::vector<NicDistance> distances(static_cast<size_t>(topology.num_ranks()), NicDistance::kNone);
  std::vector<bool> seen(static_cast<size_t>(topology.num_nodes()));
  using Reached = std::pair<Between, int64_t>;
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> queue;
  queue.push({Between{}, nic.value});
  while (!queue.empty()) {
    const auto [between, value] = queue.top();
    queue.pop();
    const NodeId node(value);
    if (seen[node.index()]) continue;
    seen[node.index()] = true;
    const NodeKind kind = topology.node(node).kind;
    if (kind == NodeKind::kGpu) distances[topology.RankOf(node)->index()] = DistanceOf(between);
    if (kind == NodeKind::kGpu || (kind == NodeKind::kNic && node != nic)) continue;
    Between next = between;
    if (kind == NodeKind::kCpu) ++next.cpus;
    if (kind == NodeKind::kSwitch && !facts.inside_devices.contains(node)) ++next.switches;
    for (LinkId link : topology.Out(node)) queue.push({next, topology.link(link).to.value});
  }
  return distances;
}

std::vector<HostNic> NicsOf(const Topology& topology, const HostFacts& facts) {
  std::vector<HostNic> nics;
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    HostNic nic;
    nic.node = NodeId(n);
    if (topology.node(nic.node).kind != NodeKind::kNic) continue;
    for (LinkId link : topology.Out(nic.node))
      nic.bandwidth_bytes_per_s =
          std::max(nic.bandwidth_bytes_per_s, topology.link(link).bandwidth_bytes_per_s);
    if (nic.bandwidth_bytes_per_s == 0) continue;
    if (const auto known = facts.nics.find(nic.node); known != facts.nics.end()) nic.facts = known->second;
    nic.distance = DistancesFrom(topology, facts, nic.node);
    nics.push_back(std::move(nic));
  }
  return nics;
}

int64_t Fastest(std::span<const HostNic> nics) {
  return std::ranges::max(nics, {}, &HostNic::bandwidth_bytes_per_s).bandwidth_bytes_per_s;
}

// By NIC: the number of ranks that no other NIC is nearer to.
std::vector<int64_t> RanksNearest(std::span<const HostNic> nics) {
  std::vector<int64_t> counts(nics.size());
  for (size_t r = 0; r < nics.front().distance.size(); ++r) {
    NicDistance least = NicDistance::kNone;
    for (const HostNic& nic : nics) least = std::min(least, nic.distance[r]);
    for (size_t i = 0; i < nics.size(); ++i) counts[i] += nics[i].distance[r] == least ? 1 : 0;
  }
  return counts;
}

}  // namespace

std::vector<HostNic> NicsToJoin(const Topology& topology, const HostFacts& facts, std::string_view place,
                                std::vector<std::string>& warnings) {
  std::vector<HostNic> nics = NicsOf(topology, facts);
  if (nics.empty()) return nics;
  std::vector<std::string> left_out;
  const auto leave_out = [&](const std::vector<bool>& which, std::string_view why) {
    if (std::ranges::find(which, false) == which.end()) return;
    std::vector<HostNic> kept;
    for (size_t i = 0; i < nics.size(); ++i) {
      if (which[i])
        left_out.push_back(
            fmt::format("{} ({}, {})", topology.node(nics[i].node).id,
                        FormatBandwidthShort(static_cast<double>(nics[i].bandwidth_bytes_per_s)), why));
      else
        kept.push_back(std::move(nics[i]));
    }
    nics = std::move(kept);
  };
  std::vector<bool> which;
  for (const HostNic& nic : nics) which.push_back(nic.facts.software);
  leave_out(which, "no PCI device");
  which.clear();
  for (const HostNic& nic : nics) which.push_back(!nic.facts.gdr);
  leave_out(which, "no gdr");
  which.clear();
  const int64_t fastest = Fastest(nics);
  for (const HostNic& nic : nics) which.push_back(nic.bandwidth_bytes_per_s < fastest / kManagementShare);
  leave_out(which, "slow");
  which.clear();
  for (int64_t ranks : RanksNearest(nics)) which.push_back(ranks == 0);
  leave_out(which, "others are nearer to all GPUs");
  if (!left_out.empty())
    warnings.push_back(fmt::format("{}: the fabric leaves out {}; the fastest of the others has {}", place,
                                   Join(left_out, ", "),
                                   FormatBandwidthShort(static_cast<double>(Fastest(nics)))));
  return nics;
}

bool SuitsRails(const Topology& topology, std::span<const HostNic> nics) {
  const std::vector<int64_t> ranks = RanksNearest(nics);
  for (size_t i = 0; i < nics.size(); ++i) {
    const bool direct = std::ranges::any_of(
        nics[i].distance, [](NicDistance distance) { return distance <= NicDistance::kSwitches; });
    if (!direct && ranks[i] == topology.num_ranks()) return false;
  }
  const auto all_reached = [](const std::vector<std::optional<int32_t>>& hops) {
    return std::ranges::all_of(hops, [](const auto& hop) { return hop.has_value(); });
  };
  return nics.size() > 1 && all_reached(RankHopsFrom(topology, Rank(0))) &&
         all_reached(RankHopsTo(topology, Rank(0)));
}

std::optional<NamedRails> RailsOfFacts(std::span<const HostNic> nics) {
  int32_t most = -1;
  bool any = false;
  for (const HostNic& nic : nics) {
    any = any || nic.facts.rail || nic.facts.plane;
    most = std::max(most, nic.facts.rail.value_or(-1));
  }
  if (!any) return std::nullopt;
  // A NIC without a stated rail or plane has a rail of its own, after the stated rails.
  std::map<std::pair<std::optional<int32_t>, std::optional<int32_t>>, std::vector<size_t>> by_rail;
  for (size_t i = 0; i < nics.size(); ++i) {
    const NicFacts& facts = nics[i].facts;
    const bool stated = facts.rail || facts.plane;
    by_rail[{stated ? facts.rail : std::optional(++most), facts.plane}].push_back(i);
  }
  NamedRails rails;
  rails.of_nic.resize(nics.size());
  for (const auto& [key, members] : by_rail) {
    const auto& [rail, plane] = key;
    for (size_t nic : members) rails.of_nic[nic] = static_cast<int64_t>(rails.names.size());
    std::string name = rail ? fmt::format("rail{}", *rail) : "";
    if (plane) name += fmt::format("{}plane{}", rail ? "-" : "", *plane);
    rails.names.push_back(std::move(name));
  }
  return rails;
}

}  // namespace xccl
