#include "topologies/cuts.h"

#include <cstddef>
#include <optional>
#include <vector>

#include "base/graph/min_cut.h"
#include "base/status.h"

namespace xccl {

int64_t MinCut(const Topology& topology, std::span<const Rank> from, std::span<const Rank> to) {
  XCCL_CHECK(!from.empty() && !to.empty());
  const int32_t source = topology.num_nodes(), sink = source + 1;
  std::vector<CapacityArc> arcs;
  for (const Link& link : topology.spec().links)
    arcs.push_back({link.from.value, link.to.value, link.bandwidth_bytes_per_s});
  for (Rank r : from) arcs.push_back({source, topology.NodeOf(r).value, kUnlimitedCapacity});
  for (Rank r : to) arcs.push_back({topology.NodeOf(r).value, sink, kUnlimitedCapacity});
  return FindMinCut(sink + 1, arcs, source, sink).capacity;
}

Halves HalvesOf(const Topology& topology) {
  std::vector<HostId> hosts;
  std::vector<std::optional<size_t>> place(static_cast<size_t>(topology.num_hosts()));  // in `hosts`, by host
  bool all_in_hosts = true;
  for (const Rank rank : AllRanks(topology.num_ranks())) {
    const std::optional<HostId> host = topology.node(topology.NodeOf(rank)).host;
    all_in_hosts = all_in_hosts && host;
    if (!host || place[host->index()]) continue;
    place[host->index()] = hosts.size();
    hosts.push_back(*host);
  }
  const bool by_host = all_in_hosts && hosts.size() > 1;
  const size_t half = (by_host ? hosts.size() : static_cast<size_t>(topology.num_ranks())) / 2;
  Halves halves;
  for (const Rank rank : AllRanks(topology.num_ranks())) {
    const size_t at = by_host ? *place[topology.node(topology.NodeOf(rank)).host->index()] : rank.index();
    (at < half ? halves.from : halves.to).push_back(rank);
  }
  if (by_host) {
    const auto middle = hosts.begin() + static_cast<std::ptrdiff_t>(half);
    halves.from_hosts.assign(hosts.begin(), middle);
    halves.to_hosts.assign(middle, hosts.end());
  }
  return halves;
}

int64_t CutBetweenHalves(const Topology& topology) {
  const Halves halves = HalvesOf(topology);
  return MinCut(topology, halves.from, halves.to);
}

}  // namespace xccl
