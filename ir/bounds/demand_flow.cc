// The cuts of an alltoall: if m of n members are on one side of a cut, m × (n - m) parts cross the cut in
// each direction.
#include "ir/bounds/demand_flow.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "ir/bounds/node_cuts.h"

namespace xccl {
namespace {

// The most sources × links × rounds of a bound's linear program, and the fewest rounds, which are made even
// if they are more work.
constexpr int64_t kMostSearched = 60'000'000;
constexpr int64_t kFewestRounds = 4;

double Crossing(int64_t inside, int64_t members, double bytes) {
  return static_cast<double>(inside) * static_cast<double>(members - inside) * bytes;
}

double GroupSeconds(const Topology& topology, const Collective& collective, double bytes,
                    const NodeGroups& group_of) {
  const std::vector<OutAndIn> bandwidth = BandwidthAround(topology, group_of);
  std::vector<int64_t> members(bandwidth.size(), 0);
  for (const Rank r : collective.ranks())
    if (const int32_t g = group_of[topology.NodeOf(r).index()]; g >= 0) ++members[static_cast<size_t>(g)];
  std::vector<OutAndIn> crossing;
  for (const int64_t inside : members) {
    const double both = Crossing(inside, collective.num_members(), bytes);
    crossing.push_back({both, both});
  }
  return SecondsAround(crossing, bandwidth);
}

double SweepSeconds(const Topology& topology, const Collective& collective, double bytes,
                    const std::vector<int32_t>& key) {
  NodeSweep sweep(topology, key);
  int32_t places = 0;
  for (int32_t n = 0; n < topology.num_nodes(); ++n) places = std::max(places, sweep.PlaceOf(n) + 1);
  std::vector<int64_t> members(static_cast<size_t>(places), 0);
  for (const Rank r : collective.ranks())
    ++members[static_cast<size_t>(sweep.PlaceOf(topology.NodeOf(r).value))];
  int64_t low = 0;
  for (int32_t place = 0; place + 1 < places; ++place) {
    low += members[static_cast<size_t>(place)];
    const double crossing = Crossing(low, collective.num_members(), bytes);
    sweep.Add(place, place + 1, crossing);
    sweep.Add(place + 1, place, crossing);
  }
  return sweep.Seconds();
}

// Returns the demands of an alltoall whose sources represent their orbits.
Demands EvenDemands(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes,
                    const SymmetryGroup& group) {
  Demands demands;
  const double bytes = static_cast<double>(sizes.PartBytes(PartId(0)));
  const int32_t members = collective.num_members();
  if (bytes == 0 || members < 2) return demands;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) {
    const std::optional<int32_t> own = collective.MemberIndex(Rank(r));
    if (!own || group.Representative(group.OrbitOf(Rank(r))) != Rank(r)) continue;
    demands.sources.push_back(topology.NodeOf(Rank(r)).value);
    std::vector<Demands::To>& to = demands.to.emplace_back();
    for (int32_t i = 0; i < members; ++i)
      if (i != *own)
        to.push_back({topology.NodeOf(collective.ranks()[static_cast<size_t>(i)]).value, bytes,
                      PartId(static_cast<int64_t>(*own) * members + i)});
  }
  return demands;
}

double EvenCuts(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes) {
  const double bytes = static_cast<double>(sizes.PartBytes(PartId(0)));
  std::vector<NodeGroups> groups = JoinedByFastLinks(topology);
  groups.push_back(EachGpu(topology));
  groups.push_back(EachHost(topology));
  double seconds = 0;
  for (const NodeGroups& group_of : groups)
    seconds = std::max(seconds, GroupSeconds(topology, collective, bytes, group_of));
  for (const std::vector<int32_t>& key : SweepKeys(topology))
    seconds = std::max(seconds, SweepSeconds(topology, collective, bytes, key));
  return seconds;
}

}  // namespace

DemandFlow DemandFlowOf(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes,
                        const SymmetryGroup& group, bool with_cuts) {
  DemandFlow flow;
  if (collective.kind() == CollectiveKind::kAlltoall) {
    flow.problem = FlowOf(topology, EvenDemands(topology, collective, sizes, group), group);
    if (flow.problem.demands.sources.empty()) return flow;
    for (const Rank r : collective.ranks()) flow.sources.push_back(topology.NodeOf(r).value);
    std::ranges::sort(flow.sources);
    flow.sinks = flow.sources;
    if (with_cuts) flow.cuts_s = EvenCuts(topology, collective, sizes);
    return flow;
  }
  const Demands demands = DemandsOf(topology, collective, sizes);
  flow.problem = FlowOf(topology, demands, group);
  flow.sources = demands.sources;
  std::set<int32_t> sinks;
  for (const auto& to : demands.to)
    for (const Demands::To& each : to) sinks.insert(each.node);
  flow.sinks.assign(sinks.begin(), sinks.end());
  if (with_cuts) flow.cuts_s = QuickCuts(topology, demands);
  return flow;
}

FlowOptions BoundFlowOptions(const FlowProblem& problem) {
  FlowOptions options;
  const int64_t searched =
      std::max<int64_t>(1, std::ssize(problem.demands.sources) * problem.topology->num_links());
  options.rounds =
      static_cast<int32_t>(std::clamp<int64_t>(kMostSearched / searched, kFewestRounds, options.rounds));
  return options;
}

}  // namespace xccl
