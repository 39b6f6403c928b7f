#include "ir/lower/paths.h"

#include <algorithm>

#include "ir/lower/chains.h"

namespace xccl::lowering {

Paths ListPaths(const Schedule& schedule, const Topology& topology) {
  Paths paths;
  for (int32_t p = 0; p < schedule.paths.size(); ++p) {
    paths.first_of.push_back(paths.size());
    const std::span<const LinkId> tree = schedule.paths[PathId(p)];
    std::vector<Path> branches;
    for (std::vector<LinkId>& chain : ChainsOf(topology, tree)) {
      const Rank src = *topology.RankOf(topology.link(chain.front()).from);
      const Rank dst = *topology.RankOf(topology.link(chain.back()).to);
      branches.push_back({src, dst, std::move(chain), kNoGroup});
    }
    if (branches.size() > 1) {
      const bool sums = branches[0].src != branches[1].src;
      std::ranges::sort(branches, {}, [&](const Path& path) { return sums ? path.src : path.dst; });
      for (Path& path : branches) path.group = static_cast<int32_t>(paths.groups.size());
      paths.groups.push_back({sums ? Group::Kind::kReduce : Group::Kind::kMulticast,
                              sums ? branches[0].dst : branches[0].src,
                              paths.size(),
                              static_cast<int32_t>(branches.size()),
                              {tree.begin(), tree.end()}});
    }
    std::ranges::move(branches, std::back_inserter(paths.paths));
  }
  paths.first_of.push_back(paths.size());
  return paths;
}

MoveTimes TimesOfMoves(const Schedule& schedule, const Paths& paths, MoveTimes times) {
  if (paths.groups.empty()) return times;
  MoveTimes of_moves;
  size_t unit = 0;
  for (int64_t t = 0; t < schedule.size(); ++t) {
    const size_t p = schedule.path[t].index();
    const int32_t branches = paths.first_of[p + 1] - paths.first_of[p];
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
