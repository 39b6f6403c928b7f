#include "ir/bounds/bound_bandwidth.h"

#include <algorithm>

#include "base/units.h"
#include "ir/bounds/bound_cut.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

// Every member holds one part at the start (reversed: at the end), and all sinks need all parts.
CutProblem PartPerMember(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes,
                         bool reversed) {
  CutProblem problem;
  problem.reversed = reversed;
  problem.supply_bytes.assign(static_cast<size_t>(topology.num_nodes()), 0);
  for (int32_t p = 0; p < collective.num_parts(); ++p)
    problem.supply_bytes[topology.NodeOf(collective.ranks()[p]).index()] = sizes.PartBytes(PartId(p));
  return problem;
}

BandwidthBound Cut(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes,
                   const CutProblem& problem, BoundKind kind) {
  if (const std::optional<WorstCut> cut = FindWorstCut(topology, problem))
    return {static_cast<double>(cut->bytes) / static_cast<double>(cut->bytes_per_s) *
                static_cast<double>(kPsPerSecond),
            kind};
  return {DegreeBoundPs(topology, collective, sizes), BoundKind::kRelaxed};
}

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

std::vector<NodeId> MemberNodes(const Topology& topology, const Collective& collective) {
  std::vector<NodeId> nodes;
  for (Rank r : collective.ranks()) nodes.push_back(topology.NodeOf(r));
  return nodes;
}

}  // namespace

BandwidthBound BandwidthBoundOf(const Topology& topology, const Collective& collective,
                                const CollectiveSizes& sizes, BoundEffort effort) {
  const CollectiveKind kind = collective.kind();
  bool reversed = false;
  CutProblem problem;
  switch (kind) {
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
      reversed = true;
      [[fallthrough]];
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
      problem = PartPerMember(topology, collective, sizes, reversed);
      problem.sinks = MemberNodes(topology, collective);
      problem.alike = AlikeSinks(topology, problem);
      return Cut(topology, collective, sizes, problem, BoundKind::kCut);
    case CollectiveKind::kReduce:
      reversed = true;
      [[fallthrough]];
    case CollectiveKind::kBroadcast:
      problem.reversed = reversed;
      problem.supply_bytes.assign(static_cast<size_t>(topology.num_nodes()), 0);
      problem.supply_bytes[topology.NodeOf(*collective.spec().root).index()] = sizes.PartBytes(PartId(0));
      problem.sinks = MemberNodes(topology, collective);
      return Cut(topology, collective, sizes, problem, BoundKind::kCut);
    case CollectiveKind::kScatter:
      reversed = true;
      [[fallthrough]];
    case CollectiveKind::kGather:
      problem = PartPerMember(topology, collective, sizes, reversed);
      problem.sinks = {topology.NodeOf(*collective.spec().root)};
      return Cut(topology, collective, sizes, problem, BoundKind::kFlow);
    case CollectiveKind::kAllreduce:
      return AllreduceBound(topology, collective, sizes.PartBytes(PartId(0)), effort);
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
    case CollectiveKind::kSendrecv:
      return DemandBound(topology, collective, sizes, effort);
    case CollectiveKind::kBarrier:
      return {0, BoundKind::kCut};
    case CollectiveKind::kCustom:
      return CustomBound(topology, collective, sizes, effort);
  }
  return {};
}

}  // namespace xccl
