#include "ir/bounds/bound_bandwidth.h"

#include <algorithm>

#include "base/units.h"
#include "ir/bounds/bound_cut.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

// Returns the orbit of each node, so that FindRatioCut() needs one search for each orbit of sinks. Returns an
// empty list if there are few sinks, if not all ranks are sinks, or if nodes of one orbit differ in supply.
std::vector<int32_t> AlikeSinks(const Topology& topology, const RatioCutProblem& problem, Orbits& found) {
  constexpr size_t kMany = 64;  // fewest sinks for which translations save more time than their search takes
  if (problem.sinks.size() < kMany || problem.sinks.size() != static_cast<size_t>(topology.num_ranks()))
    return {};
  const SymmetryGroup& group = found.OfMachine();
  if (group.IsTrivial()) return {};
  std::vector<int32_t> orbits;
  std::vector<int64_t> supply(static_cast<size_t>(group.num_node_orbits()), -1);
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    const int32_t orbit = group.OrbitOf(NodeId(n));
    int64_t& bytes = supply[static_cast<size_t>(orbit)];
    if (bytes >= 0 && bytes != problem.supply[n]) return {};
    bytes = problem.supply[n];
    orbits.push_back(orbit);
  }
  return orbits;
}

// Returns the problem of FindRatioCut() for a collective: all supplies must reach every sink. Links are
// reversed for reductions and scatter, which are the mirror images of broadcast, allgather and gather.
RatioCutProblem CutProblemOf(const Topology& topology, const Collective& collective,
                             const CollectiveSizes& sizes, Orbits& orbits) {
  const KindTraits& traits = TraitsOf(collective.kind());
  const bool one_part = traits.parts == KindTraits::Parts::kOne;
  const NodeId root = topology.NodeOf(collective.spec().root.value_or(Rank(0)));
  const auto last_holders = one_part ? KindTraits::Holders::kRoot : KindTraits::Holders::kOwn;
  RatioCutProblem problem = CutsOf(topology, traits.after == last_holders);
  for (int32_t p = 0; p < collective.num_parts(); ++p)
    problem.supply[(one_part ? root : topology.NodeOf(collective.ranks()[p])).index()] =
        sizes.PartBytes(PartId(p));
  if (!one_part && IsRooted(collective.kind())) {
    problem.sinks = {root.value};
    return problem;
  }
  for (Rank r : collective.ranks()) problem.sinks.push_back(topology.NodeOf(r).value);
  if (!one_part) problem.alike = AlikeSinks(topology, problem, orbits);
  return problem;
}

// Returns a weaker bound in seconds for amounts that are too large for FindRatioCut(): the longest time that
// one node's supply takes over all links out of the node.
double EachSupplySeconds(const RatioCutProblem& problem) {
  std::vector<double> bandwidth(problem.supply.size(), 0);
  for (const CapacityArc& arc : problem.arcs) bandwidth[arc.from] += static_cast<double>(arc.capacity);
  double seconds = 0;
  for (int32_t node = 0; node < std::ssize(problem.supply); ++node)
    if (problem.supply[node] > 0 && problem.sinks != std::vector{node})
      seconds = std::max(seconds, static_cast<double>(problem.supply[node]) / bandwidth[node]);
  return seconds;
}

}  // namespace

double OnePartSeconds(const Topology& topology, const Collective& collective, int64_t bytes) {
  const bool to_all = !IsRooted(collective.kind());
  const bool to_root = !to_all && TraitsOf(collective.kind()).after == KindTraits::Holders::kRoot;
  std::vector<NodeGroups> partitions = JoinedByFastLinks(topology);
  partitions.push_back(EachGpu(topology));
  partitions.push_back(EachHost(topology));
  double seconds = 0;
  for (const NodeGroups& group_of : partitions) {
    const std::vector<OutAndIn> bandwidth = BandwidthAround(topology, group_of);
    std::vector<int32_t> members(bandwidth.size(), 0);
    const auto group = [&](Rank r) { return group_of[topology.NodeOf(r).index()]; };
    for (const Rank r : collective.ranks())
      if (group(r) >= 0) ++members[static_cast<size_t>(group(r))];
    std::vector<OutAndIn> crossing(bandwidth.size());
    for (size_t g = 0; g < members.size(); ++g) {
      if (members[g] == 0 || members[g] == collective.num_members()) continue;
      const bool has_root = !to_all && group(*collective.spec().root) == static_cast<int32_t>(g);
      if (to_all || has_root != to_root) crossing[g].out = static_cast<double>(bytes);
      if (to_all || has_root == to_root) crossing[g].in = static_cast<double>(bytes);
    }
    seconds = std::max(seconds, SecondsAround(crossing, bandwidth));
  }
  return seconds;
}

BandwidthBound BandwidthBoundOf(const Topology& topology, const Collective& collective,
                                const CollectiveSizes& sizes, BoundEffort effort, Orbits& orbits) {
  switch (collective.kind()) {
    case CollectiveKind::kAllreduce:
      return AllreduceBound(topology, collective, sizes.PartBytes(PartId(0)), effort);
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
    case CollectiveKind::kSendrecv:
      return DemandBound(topology, collective, sizes, effort, orbits);
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
  const bool one_part = TraitsOf(collective.kind()).parts == KindTraits::Parts::kOne;
  if (one_part && collective.num_members() > kMostCutRanks)
    return {
        OnePartSeconds(topology, collective, sizes.PartBytes(PartId(0))) * static_cast<double>(kPsPerSecond),
        BoundKind::kRelaxed};
  const RatioCutProblem problem = CutProblemOf(topology, collective, sizes, orbits);
  const double scale = static_cast<double>(kPsPerSecond);
  const std::optional<RatioCut> cut = FindRatioCut(problem);
  if (!cut) return {EachSupplySeconds(problem) * scale, BoundKind::kRelaxed};
  return {static_cast<double>(cut->supply) / static_cast<double>(cut->capacity) * scale,
          problem.sinks.size() == 1 && IsRooted(collective.kind()) ? BoundKind::kFlow : BoundKind::kCut};
}

}  // namespace xccl
