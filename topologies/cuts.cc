#include "topologies/cuts.h"

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

int64_t CutBetweenHalves(const Topology& topology) {
  const std::vector<Rank> ranks = AllRanks(topology.num_ranks());
  const auto half = std::span<const Rank>(ranks).first(ranks.size() / 2);
  return MinCut(topology, half, std::span<const Rank>(ranks).subspan(half.size()));
}

}  // namespace xccl
