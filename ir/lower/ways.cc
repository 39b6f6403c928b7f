#include "ir/lower/ways.h"

#include <algorithm>

#include "ir/lower/chains.h"

namespace xccl::lowering {

Ways WaysOf(const Schedule& schedule, const Topology& topology) {
  Ways ways;
  for (int32_t p = 0; p < schedule.paths.size(); ++p) {
    ways.first_of_path.push_back(ways.size());
    const std::span<const LinkId> path = schedule.paths[PathId(p)];
    std::vector<Way> branches;
    for (std::vector<LinkId>& chain : ChainsOf(topology, path)) {
      const Rank src = *topology.RankOf(topology.link(chain.front()).from);
      const Rank dst = *topology.RankOf(topology.link(chain.back()).to);
      branches.push_back({src, dst, std::move(chain), kNoGroup});
    }
    if (branches.size() > 1) {
      const bool sums = branches[0].src != branches[1].src;
      std::ranges::sort(branches, {}, [&](const Way& way) { return sums ? way.src : way.dst; });
      for (Way& way : branches) way.group = static_cast<int32_t>(ways.groups.size());
      ways.groups.push_back({sums ? Group::Kind::kReduce : Group::Kind::kMulticast,
                             sums ? branches[0].dst : branches[0].src,
                             ways.size(),
                             static_cast<int32_t>(branches.size()),
                             {path.begin(), path.end()}});
    }
    std::ranges::move(branches, std::back_inserter(ways.ways));
  }
  ways.first_of_path.push_back(ways.size());
  return ways;
}

MoveTimes TimesOfMoves(const Schedule& schedule, const Ways& ways, MoveTimes times) {
  if (ways.groups.empty()) return times;
  MoveTimes of_moves;
  size_t unit = 0;
  for (int64_t t = 0; t < schedule.size(); ++t) {
    const size_t path = schedule.path[t].index();
    const int32_t branches = ways.first_of_path[path + 1] - ways.first_of_path[path];
    for (int32_t i = 0; i < schedule.count[t]; ++i, ++unit) {
      for (int32_t branch = 0; branch < branches; ++branch) {
        of_moves.start_ps.push_back(times.start_ps[unit]);
        of_moves.arrival_ps.push_back(times.arrival_ps[unit]);
      }
    }
  }
  return of_moves;
}

}  // namespace xccl::lowering
