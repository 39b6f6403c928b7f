#include "topologies/cuts.h"

#include <vector>

#include "base/status.h"

namespace xccl {

FlowNetwork NetworkOf(const Topology& topology) {
  FlowNetwork network(topology.num_nodes() + 2);
  for (const Link& link : topology.spec().links)
    network.AddArc(link.from.value, link.to.value, link.bandwidth_bytes_per_s);
  return network;
}

int64_t MinCut(const Topology& topology, std::span<const Rank> from, std::span<const Rank> to) {
  XCCL_CHECK(!from.empty() && !to.empty());
  FlowNetwork network = NetworkOf(topology);
  for (Rank r : from) network.AddArc(ExtraSource(topology), topology.NodeOf(r).value, FlowNetwork::kInfinite);
  for (Rank r : to) network.AddArc(topology.NodeOf(r).value, ExtraSink(topology), FlowNetwork::kInfinite);
  return network.MaxFlow(ExtraSource(topology), ExtraSink(topology));
}

int64_t CutBetweenHalves(const Topology& topology) {
  std::vector<Rank> ranks;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) ranks.emplace_back(r);
  const auto half = std::span<const Rank>(ranks).first(ranks.size() / 2);
  return MinCut(topology, half, std::span<const Rank>(ranks).subspan(half.size()));
}

}  // namespace xccl
