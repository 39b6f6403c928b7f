#include "ir/bounds/bound_damaged.h"

#include <algorithm>
#include <vector>

#include "base/graph/union_find.h"
#include "ir/bounds/node_cuts.h"
#include "ir/bounds/partitions.h"
#include "topologies/symmetry.h"
#include "topologies/whole.h"

namespace xccl {
namespace {

// Returns for each node whether the rank reaches it or, with `backwards`, whether it reaches the rank.
std::vector<bool> Reached(const Topology& topology, Rank from, bool backwards) {
  std::vector<bool> reached(static_cast<size_t>(topology.num_nodes()), false);
  std::vector<NodeId> queue = {topology.NodeOf(from)};
  reached[queue.front().index()] = true;
  for (size_t i = 0; i < queue.size(); ++i)
    for (const LinkId l : backwards ? topology.In(queue[i]) : topology.Out(queue[i])) {
      const NodeId next = backwards ? topology.link(l).from : topology.link(l).to;
      if (reached[next.index()]) continue;
      reached[next.index()] = true;
      queue.push_back(next);
    }
  return reached;
}

// Returns one grouping for each distance from the nearest GPU, except 0 and the greatest distance. A group is
// a component of the nodes up to that distance, such as a host, a leaf with its hosts, or a pod.
std::vector<NodeGroups> BelowTiers(const Topology& topology) {
  std::vector<int32_t> distance(static_cast<size_t>(topology.num_nodes()), -1);
  std::vector<NodeId> queue;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) {
    queue.push_back(topology.NodeOf(Rank(r)));
    distance[queue.back().index()] = 0;
  }
  int32_t farthest = 0;
  for (size_t i = 0; i < queue.size(); ++i)
    for (const LinkId l : topology.Out(queue[i])) {
      const NodeId next = topology.link(l).to;
      if (distance[next.index()] >= 0) continue;
      farthest = distance[next.index()] = distance[queue[i].index()] + 1;
      queue.push_back(next);
    }
  std::vector<NodeGroups> tiers;
  for (int32_t tier = 1; tier < farthest; ++tier) {
    const auto below = [&](NodeId n) { return distance[n.index()] >= 0 && distance[n.index()] <= tier; };
    UnionFind joined(distance.size());
    for (const Link& link : topology.spec().links)
      if (below(link.from) && below(link.to)) joined.Join(link.from.value, link.to.value);
    NodeGroups& groups = tiers.emplace_back();
    for (int32_t n = 0; n < topology.num_nodes(); ++n)
      groups.push_back(below(NodeId(n)) ? joined.Find(n) : -1);
  }
  return tiers;
}

// Returns the bytes that must leave and enter a group with `inside` of the members; 0 for other kinds.
OutAndIn BytesAcross(const Collective& collective, const CollectiveSizes& sizes, double inside,
                     bool has_root) {
  const double n = collective.num_members(), outside = n - inside;
  const double part = static_cast<double>(sizes.PartBytes(PartId(0)));
  switch (collective.kind()) {
    case CollectiveKind::kAllgather:
      return {inside * part, outside * part};
    case CollectiveKind::kReduceScatter:
      return {outside * part, inside * part};
    case CollectiveKind::kAlltoall:
      return {inside * outside * part, inside * outside * part};
    case CollectiveKind::kAllreduce:
      return {part, part};
    case CollectiveKind::kBroadcast:
      return {has_root ? part : 0, has_root ? 0 : part};
    case CollectiveKind::kReduce:
      return {has_root ? 0 : part, has_root ? part : 0};
    case CollectiveKind::kAllgatherv:
    case CollectiveKind::kReduceScatterv:
    case CollectiveKind::kAlltoallv:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kSendrecv:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kCustom:
      break;
  }
  return {};
}

}  // namespace

bool AllReachEachOther(const Topology& topology, const Collective& collective) {
  const Rank first = collective.ranks().front();
  for (const Rank r : collective.ranks())
    if (r.value >= topology.num_ranks()) return false;
  for (const bool backwards : {false, true}) {
    const std::vector<bool> reached = Reached(topology, first, backwards);
    for (const Rank r : collective.ranks())
      if (!reached[topology.NodeOf(r).index()]) return false;
  }
  return true;
}

std::optional<WholeMachine> WholeForBounds(const Topology& topology, const Collective& collective,
                                           Orbits& orbits) {
  if (topology.num_ranks() < kLargeMachine || orbits.OfMachine().IsTransitive()) return std::nullopt;
  const std::optional<MissingLinks> missing = FindMissingLinks(topology);
  if (!missing || !AllReachEachOther(topology, collective)) return std::nullopt;
  StatusOr<Topology> whole = MakeWhole(topology, *missing);
  if (!whole.ok()) return std::nullopt;
  const bool more = whole->num_ranks() > topology.num_ranks();
  if (!more && !FindTranslations(*whole).IsTransitive()) return std::nullopt;
  return WholeMachine{*std::move(whole), more};
}

double CutsAroundDamage(const Topology& topology, const Collective& collective,
                        const CollectiveSizes& sizes) {
  std::vector<NodeGroups> groupings = JoinedByFastLinks(topology);
  groupings.push_back(EachGpu(topology));
  groupings.push_back(EachHost(topology));
  std::ranges::move(BelowTiers(topology), std::back_inserter(groupings));
  double seconds = 0;
  for (const NodeGroups& group_of : groupings) {
    const std::vector<OutAndIn> bandwidth = BandwidthAround(topology, group_of);
    const auto group = [&](Rank r) { return group_of[topology.NodeOf(r).index()]; };
    std::vector<int32_t> members(bandwidth.size(), 0);
    for (const Rank r : collective.ranks())
      if (group(r) >= 0) ++members[static_cast<size_t>(group(r))];
    const int32_t root = collective.spec().root ? group(*collective.spec().root) : -1;
    std::vector<OutAndIn> across(bandwidth.size());
    for (size_t g = 0; g < members.size(); ++g)
      if (members[g] > 0 && members[g] < collective.num_members())
        across[g] = BytesAcross(collective, sizes, members[g], root == static_cast<int32_t>(g));
    seconds = std::max(seconds, SecondsAround(across, bandwidth));
    if (collective.kind() == CollectiveKind::kAllreduce)
      seconds = std::max(seconds, PartitionSeconds(topology, collective, group_of) *
                                      static_cast<double>(sizes.PartBytes(PartId(0))));
  }
  return seconds;
}

}  // namespace xccl
