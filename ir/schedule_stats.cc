// Rounds: one pass over the steps adds up the load of every link. Depth: an index by chunk is built by a
// counting sort; for each chunk, each write stores the length of the longest chain of transfers before it.
// Columns of a compressed schedule stand for their translates, so nothing is expanded.
#include "ir/schedule_stats.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "ir/chunk_index.h"
#include "ir/translated.h"

namespace xccl {
namespace {

// How a transfer loads links; in a compressed schedule, loads are counted per orbit of links.
struct Load {
  const SymmetryGroup* group = nullptr;  // null: plain
  size_t Place(LinkId l) const {
    return group != nullptr ? static_cast<size_t>(group->OrbitOf(l)) : l.index();
  }
  int64_t Times(LinkId l) const {
    return group != nullptr ? group->order() / group->LinkOrbitSize(group->OrbitOf(l)) : 1;
  }
};

int64_t CountRounds(const Schedule& schedule, const Topology& topology, const Load& of) {
  int64_t unit = 0;
  for (const Link& link : topology.spec().links) unit = std::gcd(unit, link.bandwidth_bytes_per_s);
  std::vector<int64_t> load(static_cast<size_t>(topology.num_links()), 0);
  std::vector<LinkId> touched;
  int64_t rounds = 0;
  for (int64_t t = 0; t < schedule.size();) {
    const int32_t step = schedule.step[t];
    touched.clear();
    for (; t < schedule.size() && schedule.step[t] == step; ++t) {
      for (LinkId l : schedule.paths[schedule.path[t]]) {
        int64_t& carried = load[of.Place(l)];
        if (carried == 0) touched.push_back(l);
        carried += schedule.count[t] * of.Times(l);
      }
    }
    int64_t longest = 0;
    for (LinkId l : touched) {
      const int64_t capacity = topology.link(l).bandwidth_bytes_per_s / unit;
      longest = std::max(longest, (load[of.Place(l)] + capacity - 1) / capacity);
      load[of.Place(l)] = 0;
    }
    rounds += longest;
  }
  return rounds;
}

// Counts the messages of the columns; translates of one path count as one.
int64_t CountMessages(const Schedule& schedule, const std::vector<int32_t>& path_class) {
  std::vector<int32_t> step_seen(path_class.size(), -1);
  int64_t messages = 0;
  for (int64_t t = 0; t < schedule.size(); ++t) {
    int32_t& seen = step_seen[static_cast<size_t>(path_class[schedule.path[t].index()])];
    if (seen != schedule.step[t]) ++messages;
    seen = schedule.step[t];
  }
  return messages;
}

int32_t FindDepth(const Schedule& schedule, const Topology& topology) {
  int32_t deepest = 0;
  std::vector<int32_t> depth(static_cast<size_t>(topology.num_ranks()), 0);
  std::vector<std::pair<Rank, int32_t>> writes;
  std::vector<Rank> sources, destinations;
  ForEachChunk(schedule, [&](ChunkId, std::span<const int32_t> transfers) {
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

ScheduleStats Stats(const Schedule& schedule, const Collective& collective, const Topology& topology) {
  ScheduleStats stats;
  stats.steps = schedule.num_steps();
  stats.depth = FindDepth(schedule, topology);
  if (schedule.symmetry.empty()) {
    stats.transfers = schedule.size();
    std::vector<int32_t> each(static_cast<size_t>(schedule.paths.size()));
    std::iota(each.begin(), each.end(), 0);
    stats.messages = CountMessages(schedule, each);
    stats.rounds = CountRounds(schedule, topology, {});
    return stats;
  }
  const StatusOr<Translations> translations = Translations::Create(schedule, collective, topology);
  XCCL_CHECK(translations.ok());  // guaranteed by Requires
  const SymmetryGroup& group = translations->group();
  stats.transfers = ExpandedTransfers(schedule, collective, topology);
  stats.messages = CountMessages(schedule, translations->PathClasses(schedule.paths)) * group.order();
  stats.rounds = CountRounds(schedule, topology, {&group});
  return stats;
}

std::vector<Rank> RelaysOf(const Schedule& schedule, const Collective& collective, const Topology& topology) {
  std::vector<Rank> relays;
  if (collective.num_members() == topology.num_ranks()) return relays;
  std::vector<bool> carries(static_cast<size_t>(topology.num_ranks()), false);
  std::vector<Rank> sources, destinations;
  for (int32_t p = 0; p < schedule.paths.size(); ++p) {
    PathEnds(topology, schedule.paths[PathId(p)], sources, destinations);
    for (Rank r : sources) carries[r.index()] = true;
    for (Rank r : destinations) carries[r.index()] = true;
  }
  if (!schedule.symmetry.empty()) {
    const StatusOr<Translations> translations = Translations::Create(schedule, collective, topology);
    XCCL_CHECK(translations.ok());  // guaranteed by Requires
    const SymmetryGroup& group = translations->group();
    std::vector<bool> orbit_carries(static_cast<size_t>(group.num_rank_orbits()), false);
    for (int32_t r = 0; r < topology.num_ranks(); ++r)
      if (carries[static_cast<size_t>(r)]) orbit_carries[static_cast<size_t>(group.OrbitOf(Rank(r)))] = true;
    for (int32_t r = 0; r < topology.num_ranks(); ++r)
      carries[static_cast<size_t>(r)] = orbit_carries[static_cast<size_t>(group.OrbitOf(Rank(r)))];
  }
  for (int32_t r = 0; r < topology.num_ranks(); ++r)
    if (carries[static_cast<size_t>(r)] && !collective.MemberIndex(Rank(r))) relays.push_back(Rank(r));
  return relays;
}

}  // namespace xccl
