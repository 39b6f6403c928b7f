// Rounds: one pass over the steps adds up the load of every link. Depth: for each chunk, each write stores
// the length of the longest chain of transfers before it (ir/analysis/chunk_index.h lists the transfers of a
// chunk). The columns of a compressed schedule stand for their translates, so nothing is expanded. Only the
// number of transfers counts detours around damage (ir/damaged.h) and lost ranks.
#include "ir/analysis/schedule_stats.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/analysis/chunk_index.h"
#include "ir/damaged.h"
#include "ir/sizes.h"
#include "ir/translated.h"

namespace xccl {
namespace {

// Returns the rounds. Adds up loads by orbit of links. A transfer of the columns loads each link of an orbit
// once for each of its translates that pass the link.
int64_t CountRounds(const Schedule& schedule, const Topology& topology, const SymmetryGroup& group) {
  int64_t unit = 0;
  for (const Link& link : topology.spec().links) unit = std::gcd(unit, link.bandwidth_bytes_per_s);
  std::vector<int64_t> load(static_cast<size_t>(group.num_link_orbits()), 0);
  const auto load_of = [&](LinkId l) -> int64_t& { return load[static_cast<size_t>(group.OrbitOf(l))]; };
  std::vector<LinkId> touched;
  int64_t rounds = 0;
  for (int64_t t = 0; t < schedule.size();) {
    const int32_t step = schedule.step[t];
    touched.clear();
    for (; t < schedule.size() && schedule.step[t] == step; ++t) {
      for (LinkId l : schedule.paths[schedule.path[t]]) {
        int64_t& carried = load_of(l);
        if (carried == 0) touched.push_back(l);
        carried += schedule.count[t] * (group.order() / group.LinkOrbitSize(group.OrbitOf(l)));
      }
    }
    int64_t longest = 0;
    for (LinkId l : touched) {
      const int64_t capacity = topology.link(l).bandwidth_bytes_per_s / unit;
      longest = std::max(longest, (load_of(l) + capacity - 1) / capacity);
      load_of(l) = 0;
    }
    rounds += longest;
  }
  return rounds;
}

// Returns the messages of the plain form. In a step, paths of the columns that are translates of each other
// carry one message and its translates.
int64_t CountMessages(const Schedule& schedule, const Collective& collective, const Topology& topology,
                      const SymmetryGroup& group) {
  std::vector<int32_t> path_class(static_cast<size_t>(schedule.paths.size()));
  std::iota(path_class.begin(), path_class.end(), 0);
  if (!group.IsTrivial())
    path_class = Translations::Create(schedule, collective, topology).value().PathClasses(schedule.paths);
  std::vector<int32_t> step_seen(path_class.size(), -1);
  int64_t messages = 0;
  for (int64_t t = 0; t < schedule.size(); ++t) {
    int32_t& seen = step_seen[static_cast<size_t>(path_class[schedule.path[t].index()])];
    if (seen != schedule.step[t]) ++messages;
    seen = schedule.step[t];
  }
  return messages * group.order();
}

int32_t FindDepth(const Schedule& schedule, const Topology& topology) {
  int32_t deepest = 0;
  std::vector<int32_t> depth(static_cast<size_t>(topology.num_ranks()), 0);
  std::vector<std::pair<Rank, int32_t>> writes;
  std::vector<Rank> sources, destinations;
  ForEachMovedChunk(schedule, [&](ChunkId, std::span<const int32_t> transfers) {
    if (transfers.empty()) return;
    std::fill(depth.begin(), depth.end(), 0);
    ForEachStep(schedule, transfers, [&](std::span<const int32_t> same_step) {
      writes.clear();
      for (int32_t t : same_step) {
        PathEnds(topology, schedule.paths[schedule.path[t]], sources, destinations);
        int32_t behind = 0;
        for (Rank r : sources) behind = std::max(behind, depth[r.index()]);
        for (Rank r : destinations) writes.emplace_back(r, behind + 1);
      }
      for (const auto& [rank, reached] : writes) {
        depth[rank.index()] = std::max(depth[rank.index()], reached);
        deepest = std::max(deepest, reached);
      }
    });
  });
  return deepest;
}

}  // namespace

ScheduleStats Stats(const Schedule& schedule, const Collective& collective, const Topology& machine) {
  const SymmetricMachine whole(schedule, collective, machine);
  const Topology& topology = *whole;
  const SymmetryGroup group = SymmetryGroup::Create(topology, schedule.symmetry).value();
  ScheduleStats stats;
  stats.transfers = ExpandedTransfers(schedule, collective, machine);
  stats.steps = schedule.num_steps();
  stats.rounds = CountRounds(schedule, topology, group);
  stats.depth = FindDepth(schedule, topology);
  stats.messages = CountMessages(schedule, collective, machine, group);
  return stats;
}

LinkUse LinkUseOf(const Schedule& schedule, const Collective& collective, const Topology& machine,
                  int64_t size_bytes) {
  const SymmetricMachine whole(schedule, collective, machine);
  const Topology& topology = *whole;
  const SymmetryGroup group = SymmetryGroup::Create(topology, schedule.symmetry).value();
  const CollectiveSizes sizes(whole.collective(), WholeSizeBytes(collective, whole.collective(), size_bytes));
  std::vector<double> path_bytes(static_cast<size_t>(schedule.paths.size()));
  double moved = 0;
  for (int64_t t = 0; t < schedule.size(); ++t) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < schedule.count[t]; ++i)
      bytes += sizes.ChunkBytes(ChunkId(schedule.first[t].value + i));
    moved += static_cast<double>(bytes);
    path_bytes[schedule.path[t].index()] += static_cast<double>(bytes);
  }

  LinkUse use{.messages = CountMessages(schedule, collective, machine, group)};
  std::vector<double> load_bytes(static_cast<size_t>(group.num_link_orbits()));  // of all links of an orbit
  for (int32_t p = 0; p < schedule.paths.size(); ++p) {
    for (LinkId l : schedule.paths[PathId(p)]) {
      const Link& link = topology.link(l);
      const double bytes = path_bytes[static_cast<size_t>(p)];
      const std::optional<HostId> from = topology.node(link.from).host;
      if (from && from != topology.node(link.to).host) use.between_hosts_bytes += bytes;
      load_bytes[static_cast<size_t>(group.OrbitOf(l))] += bytes;
      const int64_t rate = link.bandwidth_bytes_per_s;
      if (use.slowest_bytes_per_s == 0 || rate < use.slowest_bytes_per_s) use.slowest_bytes_per_s = rate;
    }
  }
  const auto copies = static_cast<double>(group.order());
  for (int32_t o = 0; o < group.num_link_orbits(); ++o) {
    const double bytes =
        load_bytes[static_cast<size_t>(o)] * copies / static_cast<double>(group.LinkOrbitSize(o));
    const int64_t rate = topology.link(group.LinkRepresentative(o)).bandwidth_bytes_per_s;
    use.fullest_ps = std::max(use.fullest_ps, bytes * kPsPerSecond / static_cast<double>(rate));
  }
  use.between_hosts_bytes *= copies;
  if (use.messages > 0) use.message_bytes = moved * copies / static_cast<double>(use.messages);
  return use;
}

std::vector<Rank> RelaysOf(const Schedule& schedule, const Collective& collective, const Topology& machine) {
  const SymmetricMachine whole(schedule, collective, machine);
  const Topology& topology = *whole;
  std::vector<Rank> relays;
  if (whole.collective().num_members() == topology.num_ranks()) return relays;
  const SymmetryGroup group = SymmetryGroup::Create(topology, schedule.symmetry).value();
  std::vector<bool> carries(static_cast<size_t>(group.num_rank_orbits()), false);
  std::vector<Rank> sources, destinations;
  for (int32_t p = 0; p < schedule.paths.size(); ++p) {
    PathEnds(topology, schedule.paths[PathId(p)], sources, destinations);
    for (Rank r : sources) carries[group.OrbitOf(r)] = true;
    for (Rank r : destinations) carries[group.OrbitOf(r)] = true;
  }
  for (Rank r(0); r.value < topology.num_ranks(); ++r.value)
    if (carries[group.OrbitOf(r)] && !collective.MemberIndex(r)) relays.push_back(r);
  return relays;
}

}  // namespace xccl
