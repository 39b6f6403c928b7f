// Pass "paths": the paths of the schedule as future connections, with one rank at either end.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "ir/lower/fan_ins.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "topologies/topology.h"

namespace xccl::lowering {

inline constexpr int32_t kNoGroup = -1;
inline constexpr int32_t kNoPath = -1;

// A chain of links from one rank to another: a whole path of the schedule, one branch of a tree, or one
// member of a fan-in.
struct Path {
  Rank src, dst;
  std::vector<LinkId> links;
  int32_t group = kNoGroup;  // in Paths::groups, where the path is a branch or member
  bool operator==(const Path&) const = default;
};

// The branches of one tree: paths[first .. first + count), in ascending order of their ranks; or the members
// of a fan-in, in the order in which they are added.
struct PathGroup {
  Group::Kind kind = Group::Kind::kMulticast;
  Rank root;
  int32_t first = 0, count = 0;
  std::vector<LinkId> links;  // of the tree
  int32_t own = 0;            // Group::own
  bool operator==(const PathGroup&) const = default;
};

struct Paths {
  std::vector<Path> paths;
  std::vector<PathGroup> groups;
  // PathId p of the schedule became paths[first_of[p] .. first_of[p + 1]); none where only fan-ins use it.
  std::vector<int32_t> first_of;
  // By unit (FanIns::of_unit): its path where it belongs to a fan-in, else kNoPath. Empty without fan-ins.
  std::vector<int32_t> of_unit = {};

  int32_t size() const { return static_cast<int32_t>(paths.size()); }
  // A multicast's sender, and a reduction's or fan-in's receiver, handles all paths of the group as one: the
  // first.
  int32_t SendUnit(int32_t path) const { return Unit(path, true); }
  int32_t RecvUnit(int32_t path) const { return Unit(path, false); }
  // The paths [first, end) that a unit of transfer t moves on.
  std::pair<int32_t, int32_t> OfUnit(const Schedule& schedule, int64_t t, int64_t unit) const {
    if (!of_unit.empty() && of_unit[static_cast<size_t>(unit)] != kNoPath)
      return {of_unit[static_cast<size_t>(unit)], of_unit[static_cast<size_t>(unit)] + 1};
    const size_t p = schedule.path[t].index();
    return {first_of[p], first_of[p + 1]};
  }
  bool operator==(const Paths&) const = default;

 private:
  int32_t Unit(int32_t path, bool sends) const {
    const int32_t group = paths[path].group;
    const bool joined = group != kNoGroup && (groups[group].kind == Group::Kind::kMulticast) == sends;
    return joined ? groups[group].first : path;
  }
};

// Guarantees one path for every chain of the schedule that some unit outside fan-ins moves on, for every tree
// a group with one path a branch, and for every fan-in a group with one path a member. Later passes give each
// path a connection, and each group a group of the program. Linear in the links and units.
Paths ListPaths(const Schedule& schedule, const Topology& topology, const FanIns& fan_ins = {});

// From the times of every unit to those of every move: the unit on each of its paths.
MoveTimes TimesOfMoves(const Schedule& schedule, const Paths& paths, MoveTimes times);

}  // namespace xccl::lowering
