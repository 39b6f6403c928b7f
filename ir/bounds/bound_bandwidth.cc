#include "ir/bounds/bound_bandwidth.h"

#include <algorithm>

#include "base/units.h"
#include "ir/bounds/bound_cut.h"
#include "ir/bounds/node_cuts.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

// The orbits of nodes if all ranks are sinks and translations keep the supplies; otherwise empty.
std::vector<int32_t> AlikeSinks(const Topology& topology, const CutProblem& problem) {
  constexpr size_t kMany = 64;  // with fewer sinks, finding translations costs more than it saves
  if (problem.sinks.size() < kMany || problem.sinks.size() != static_cast<size_t>(topology.num_ranks()))
    return {};
  const SymmetryGroup group = FindTranslations(topology);
  if (group.IsTrivial()) return {};
  std::vector<int32_t> orbits;
  std::vector<int64_t> supply(static_cast<size_t>(group.num_node_orbits()), -1);
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    const int32_t orbit = group.OrbitOf(NodeId(n));
    int64_t& bytes = supply[static_cast<size_t>(orbit)];
    if (bytes >= 0 && bytes != problem.supply_bytes[n]) return {};
    bytes = problem.supply_bytes[n];
    orbits.push_back(orbit);
  }
  return orbits;
}

// Supplies that must all get to every sink; with links reversed for sums, and for parts that leave the root.
CutProblem CutProblemOf(const Topology& topology, const Collective& collective,
                        const CollectiveSizes& sizes) {
  const KindTraits& traits = TraitsOf(collective.kind());
  const bool one_part = traits.parts == KindTraits::Parts::kOne;
  const NodeId root = topology.NodeOf(collective.spec().root.value_or(Rank(0)));
  CutProblem problem;
  problem.reversed = traits.after == (one_part ? KindTraits::Holders::kRoot : KindTraits::Holders::kOwn);
  problem.supply_bytes.assign(static_cast<size_t>(topology.num_nodes()), 0);
  for (int32_t p = 0; p < collective.num_parts(); ++p)
    problem.supply_bytes[(one_part ? root : topology.NodeOf(collective.ranks()[p])).index()] =
        sizes.PartBytes(PartId(p));
  if (!one_part && IsRooted(collective.kind())) {
    problem.sinks = {root};
    return problem;
  }
  for (Rank r : collective.ranks()) problem.sinks.push_back(topology.NodeOf(r));
  if (!one_part) problem.alike = AlikeSinks(topology, problem);
  return problem;
}

// Each supply by itself over the links of its node, where amounts are too large for the search.
double EachSupplyPs(const Topology& topology, const CutProblem& problem) {
  const std::vector<OutAndIn> bandwidth = BandwidthAround(topology, EachGpu(topology));
  double seconds = 0;
  for (Rank r(0); r.value < topology.num_ranks(); ++r.value) {
    const NodeId node = topology.NodeOf(r);
    const double bytes = static_cast<double>(problem.supply_bytes[node.index()]);
    if (bytes == 0 || problem.sinks == std::vector{node}) continue;
    seconds =
        std::max(seconds, bytes / (problem.reversed ? bandwidth[r.index()].in : bandwidth[r.index()].out));
  }
  return seconds * static_cast<double>(kPsPerSecond);
}

}  // namespace

BandwidthBound BandwidthBoundOf(const Topology& topology, const Collective& collective,
                                const CollectiveSizes& sizes, BoundEffort effort) {
  switch (collective.kind()) {
    case CollectiveKind::kAllreduce:
      return AllreduceBound(topology, collective, sizes.PartBytes(PartId(0)), effort);
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
    case CollectiveKind::kSendrecv:
      return DemandBound(topology, collective, sizes, effort);
    case CollectiveKind::kCustom:
      return CustomBound(topology, collective, sizes, effort);
    case CollectiveKind::kBarrier:
      return {0, BoundKind::kCut};
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      break;
  }
  const CutProblem problem = CutProblemOf(topology, collective, sizes);
  const std::optional<WorstCut> cut = FindWorstCut(topology, problem);
  if (!cut) return {EachSupplyPs(topology, problem), BoundKind::kRelaxed};
  return {static_cast<double>(cut->bytes) / static_cast<double>(cut->bytes_per_s) *
              static_cast<double>(kPsPerSecond),
          problem.sinks.size() == 1 && IsRooted(collective.kind()) ? BoundKind::kFlow : BoundKind::kCut};
}

}  // namespace xccl
