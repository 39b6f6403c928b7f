#include "ir/lower/paths.h"

#include <algorithm>

#include "ir/lower/chains.h"

namespace xccl::lowering {

namespace {

// Returns, by path of the schedule, whether some unit outside fan-ins takes it.
std::vector<bool> UsedAlone(const Schedule& schedule, const FanIns& fan_ins) {
  std::vector<bool> used(static_cast<size_t>(schedule.paths.size()), fan_ins.of_unit.empty());
  int64_t unit = 0;
  for (int64_t t = 0; t < schedule.size() && !fan_ins.of_unit.empty(); ++t)
    for (int32_t i = 0; i < schedule.count[t]; ++i, ++unit)
      if (fan_ins.Of(unit) == kNoIndex) used[schedule.path[t].index()] = true;
  return used;
}

// Appends a group for every fan-in, and notes the path of every unit that belongs to a fan-in.
void AddFanIns(const Schedule& schedule, const Topology& topology, const FanIns& fan_ins, Paths& paths) {
  if (fan_ins.all.empty()) return;
  const int32_t first_group = static_cast<int32_t>(paths.groups.size());
  for (const FanIn& fan_in : fan_ins.all) {
    const int32_t group = static_cast<int32_t>(paths.groups.size());
    paths.groups.push_back({Group::Kind::kFanIn,
                            fan_in.root,
                            paths.size(),
                            static_cast<int32_t>(fan_in.paths.size()),
                            {},
                            fan_in.own});
    for (PathId p : fan_in.paths) {
      const std::span<const LinkId> links = schedule.paths[p];
      const Rank src = *topology.RankOf(topology.link(links.front()).from);
      paths.paths.push_back({src, fan_in.root, {links.begin(), links.end()}, group});
    }
  }
  int64_t unit = 0;
  for (int64_t t = 0; t < schedule.size(); ++t) {
    for (int32_t i = 0; i < schedule.count[t]; ++i, ++unit) {
      paths.of_unit.push_back(kNoIndex);
      if (fan_ins.Of(unit) == kNoIndex) continue;
      const FanIn& fan_in = fan_ins.all[static_cast<size_t>(fan_ins.Of(unit))];
      const auto member = std::ranges::find(fan_in.paths, schedule.path[t]) - fan_in.paths.begin();
      paths.of_unit.back() = paths.groups[static_cast<size_t>(first_group + fan_ins.Of(unit))].first +
                             static_cast<int32_t>(member);
    }
  }
}

}  // namespace

Paths ListPaths(const Schedule& schedule, const Topology& topology, const FanIns& fan_ins) {
  Paths paths;
  const std::vector<bool> used = UsedAlone(schedule, fan_ins);
  for (int32_t p = 0; p < schedule.paths.size(); ++p) {
    paths.first_of.push_back(paths.size());
    if (!used[static_cast<size_t>(p)]) continue;
    const std::span<const LinkId> tree = schedule.paths[PathId(p)];
    std::vector<Path> branches;
    for (std::vector<LinkId>& chain : ChainsOf(topology, tree)) {
      const Rank src = *topology.RankOf(topology.link(chain.front()).from);
      const Rank dst = *topology.RankOf(topology.link(chain.back()).to);
      branches.push_back({src, dst, std::move(chain), kNoIndex});
    }
    if (branches.size() > 1) {
      const bool sums = branches[0].src != branches[1].src;
      std::ranges::sort(branches, {}, [&](const Path& path) { return sums ? path.src : path.dst; });
      for (Path& path : branches) path.group = static_cast<int32_t>(paths.groups.size());
      paths.groups.push_back({sums ? Group::Kind::kReduce : Group::Kind::kMulticast,
                              sums ? branches[0].dst : branches[0].src,
                              paths.size(),
                              static_cast<int32_t>(branches.size()),
                              {tree.begin(), tree.end()},
                              0});
    }
    std::ranges::move(branches, std::back_inserter(paths.paths));
  }
  paths.first_of.push_back(paths.size());
  AddFanIns(schedule, topology, fan_ins, paths);
  return paths;
}

MoveTimes TimesOfMoves(const Schedule& schedule, const Paths& paths, MoveTimes times) {
  if (paths.groups.empty()) return times;
  MoveTimes of_moves;
  size_t unit = 0;
  for (int64_t t = 0; t < schedule.size(); ++t) {
    for (int32_t i = 0; i < schedule.count[t]; ++i, ++unit) {
      const auto [first, end] = paths.OfUnit(schedule, t, static_cast<int64_t>(unit));
      for (int32_t path = first; path < end; ++path) {
        of_moves.start_ps.push_back(times.start_ps[unit]);
        of_moves.arrival_ps.push_back(times.arrival_ps[unit]);
      }
    }
  }
  return of_moves;
}

}  // namespace xccl::lowering
