// User-defined tables, one destination at a time. A destination gets what it needs and does not hold from
// the ranks that hold contributions to it: each part once, over links that all parts share.
//
// Each part has a source node of its own, joined to all its holders without limit. So a cut counts the part
// only if all its holders lie behind the cut. The worst cut of the extended graph is a bound.
#include <algorithm>

#include "base/graph/min_cut.h"
#include "base/units.h"
#include "ir/bounds/bound_bandwidth.h"

namespace xccl {
namespace {

struct Wanted {
  int64_t bytes;
  std::vector<int32_t> holders;  // nodes
};

// The parts that the rank must receive.
std::vector<Wanted> WantedBy(const Topology& topology, const Collective& collective,
                             const CollectiveSizes& sizes, Rank rank) {
  std::vector<Wanted> wanted;
  std::vector<Holding> before, after;
  for (PartId p : collective.OutputParts(rank)) {
    const int64_t bytes = sizes.PartBytes(p);
    if (bytes == 0) continue;
    const ChunkId chunk = collective.FirstChunk(p);
    collective.Before(chunk, before);
    for (int32_t i = 0; i < collective.ChunksOf(p); ++i) {
      collective.After(ChunkId(chunk.value + i), after);
      if (!after.empty()) break;
    }
    const auto mine = std::ranges::find(after, rank, &Holding::rank);
    if (mine == after.end()) continue;
    const auto held = std::ranges::find(before, rank, &Holding::rank);
    if (held != before.end() && std::ranges::equal(held->contributions, mine->contributions)) continue;
    Wanted part{bytes, {}};
    for (const Holding& holding : before) {
      if (holding.rank == rank) continue;
      const bool helps = std::ranges::any_of(
          holding.contributions, [&](Rank c) { return std::ranges::binary_search(mine->contributions, c); });
      if (helps) part.holders.push_back(topology.NodeOf(holding.rank).value);
    }
    if (!part.holders.empty()) wanted.push_back(std::move(part));
  }
  return wanted;
}

// Newton's method as in base/graph/ratio_cut.cc, on doubles turned into capacities; any cut that is found is
// evaluated by itself, so rounding costs sharpness only.
double WorstSeconds(const Topology& topology, const std::vector<Wanted>& wanted, int32_t sink) {
  constexpr double kUnits = 1LL << 40;
  const int32_t nodes = topology.num_nodes(), source = nodes;
  double total = 0;
  for (const Wanted& part : wanted) total += static_cast<double>(part.bytes);
  double into = 0;
  for (LinkId l : topology.In(NodeId(sink)))
    into += static_cast<double>(topology.link(l).bandwidth_bytes_per_s);
  double seconds = total / into;
  while (true) {
    std::vector<CapacityArc> arcs;
    for (const Link& link : topology.spec().links)
      arcs.push_back(
          {link.from.value, link.to.value,
           static_cast<int64_t>(
               std::min(1.0, static_cast<double>(link.bandwidth_bytes_per_s) * seconds / total) * kUnits)});
    for (size_t i = 0; i < wanted.size(); ++i) {
      const int32_t part = nodes + 1 + static_cast<int32_t>(i);
      arcs.push_back(
          {source, part, static_cast<int64_t>(static_cast<double>(wanted[i].bytes) / total * kUnits)});
      for (int32_t holder : wanted[i].holders) arcs.push_back({part, holder, kUnlimitedCapacity});
    }
    const int32_t all_nodes = nodes + 1 + static_cast<int32_t>(wanted.size());
    const std::vector<bool> side = FindMinCut(all_nodes, arcs, source, sink).source_side;
    double inside = 0, out = 0;
    for (const Wanted& part : wanted) {
      const bool all = std::ranges::all_of(part.holders, [&](int32_t h) { return side[h]; });
      if (all) inside += static_cast<double>(part.bytes);
    }
    for (const Link& link : topology.spec().links)
      if (side[link.from.index()] && !side[link.to.index()])
        out += static_cast<double>(link.bandwidth_bytes_per_s);
    if (out == 0 || inside / out <= seconds * (1 + 1e-9)) return seconds;
    seconds = inside / out;
  }
}

constexpr int64_t kFlowWork = 20'000'000;  // destinations × (links + entries) up to which flows are computed

}  // namespace

BandwidthBound CustomBound(const Topology& topology, const Collective& collective,
                           const CollectiveSizes& sizes, BoundEffort effort) {
  double ps =
      std::max(DegreeBoundPs(topology, collective, sizes), TablesBoundPs(topology, collective, sizes));
  const int64_t work = static_cast<int64_t>(collective.num_members()) *
                       (topology.num_links() + static_cast<int64_t>(collective.spec().post.size()));
  if (effort == BoundEffort::kFast || work > kFlowWork) return {ps, BoundKind::kRelaxed};
  for (Rank rank : collective.ranks()) {
    const std::vector<Wanted> wanted = WantedBy(topology, collective, sizes, rank);
    if (wanted.empty()) continue;
    ps = std::max(
        ps, WorstSeconds(topology, wanted, topology.NodeOf(rank).value) * static_cast<double>(kPsPerSecond));
  }
  return {ps, BoundKind::kRelaxed};
}

}  // namespace xccl
