#include "ir/bounds/demands.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "ir/bounds/needs.h"
#include "ir/bounds/node_cuts.h"

namespace xccl {
namespace {

double GroupSeconds(const Topology& topology, const Demands& demands, const NodeGroups& group_of) {
  const std::vector<OutAndIn> bandwidth = BandwidthAround(topology, group_of);
  std::vector<OutAndIn> bytes(bandwidth.size());
  for (size_t s = 0; s < demands.sources.size(); ++s) {
    for (const Demands::To& to : demands.to[s]) {
      const int32_t a = group_of[demands.sources[s]], b = group_of[to.node];
      if (a == b) continue;
      if (a >= 0) bytes[a].out += to.bytes;
      if (b >= 0) bytes[b].in += to.bytes;
    }
  }
  return SecondsAround(bytes, bandwidth);
}

double SweepSeconds(const Topology& topology, const Demands& demands, const std::vector<int32_t>& key) {
  NodeSweep sweep(topology, key);
  for (size_t s = 0; s < demands.sources.size(); ++s)
    for (const Demands::To& to : demands.to[s])
      sweep.Add(sweep.PlaceOf(demands.sources[s]), sweep.PlaceOf(to.node), to.bytes);
  return sweep.Seconds();
}

}  // namespace

Demands DemandsOf(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes,
                  double least_bytes) {
  std::map<int32_t, std::vector<Demands::To>> by_source;
  std::vector<Holding> before, after;
  for (int32_t p = 0; p < collective.num_parts(); ++p) {
    const double bytes = std::max(static_cast<double>(sizes.PartBytes(PartId(p))), least_bytes);
    if (bytes == 0) continue;
    const std::optional<ChunkId> chunk = UsedChunk(collective, PartId(p));
    if (!chunk) continue;
    collective.Before(*chunk, before);
    collective.After(*chunk, after);
    if (before.empty() || after.empty() || before[0].rank == after[0].rank) continue;
    by_source[topology.NodeOf(before[0].rank).value].push_back(
        {topology.NodeOf(after[0].rank).value, bytes, PartId(p)});
  }
  Demands demands;
  for (auto& [node, to] : by_source) {
    demands.sources.push_back(node);
    demands.to.push_back(std::move(to));
  }
  return demands;
}

double QuickCuts(const Topology& topology, const Demands& demands) {
  std::vector<NodeGroups> groups = JoinedByFastLinks(topology);
  groups.push_back(EachGpu(topology));
  groups.push_back(EachHost(topology));
  double seconds = 0;
  for (const NodeGroups& group_of : groups)
    seconds = std::max(seconds, GroupSeconds(topology, demands, group_of));
  for (const std::vector<int32_t>& key : SweepKeys(topology))
    seconds = std::max(seconds, SweepSeconds(topology, demands, key));
  return seconds;
}

}  // namespace xccl
