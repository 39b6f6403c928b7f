// Pass "paths": turns the paths of the schedule into paths between two ranks, which become connections.
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

// A chain of links from one rank to another. It is a whole path of the schedule, a branch of a tree, or the
// path of one member of a fan-in.
struct Path {
  Rank src, dst;
  std::vector<LinkId> links;
  int32_t group = kNoIndex;  // index in Paths::groups of its tree or fan-in
  bool operator==(const Path&) const = default;
};

// A tree or a fan-in, with the paths [first, first + count). The branches of a tree are in ascending order of
// the ranks at their far ends; the members of a fan-in are in the order in which their values are added.
struct PathGroup {
  Group::Kind kind = Group::Kind::kMulticast;
  Rank root;
  int32_t first = 0, count = 0;
  std::vector<LinkId> links;  // all links of the tree; a fan-in has none
  int32_t own = 0;            // as Group::own (ir/program.h)
  bool operator==(const PathGroup&) const = default;
};

struct Paths {
  std::vector<Path> paths;
  std::vector<PathGroup> groups;
  // PathId p of the schedule became the paths [first_of[p], first_of[p + 1]). The range is empty if only
  // fan-ins use p.
  std::vector<int32_t> first_of;
  // By unit (fan_ins.h): the path of a unit that belongs to a fan-in, else kNoIndex. Empty without fan-ins.
  std::vector<int32_t> of_unit = {};

  int32_t size() const { return static_cast<int32_t>(paths.size()); }
  // Return the path that stands for `path` at its sender (SendUnit) or at its receiver (RecvUnit). The sender
  // of a multicast, and the receiver of an in-switch reduction or a fan-in, handles all paths of the group as
  // one; the group's first path stands for them.
  int32_t SendUnit(int32_t path) const { return Unit(path, true); }
  int32_t RecvUnit(int32_t path) const { return Unit(path, false); }
  // Returns the paths [first, end) that a unit of transfer t takes.
  std::pair<int32_t, int32_t> OfUnit(const Schedule& schedule, int64_t t, int64_t unit) const {
    if (!of_unit.empty() && of_unit[static_cast<size_t>(unit)] != kNoIndex)
      return {of_unit[static_cast<size_t>(unit)], of_unit[static_cast<size_t>(unit)] + 1};
    const size_t p = schedule.path[t].index();
    return {first_of[p], first_of[p + 1]};
  }
  bool operator==(const Paths&) const = default;

 private:
  int32_t Unit(int32_t path, bool sends) const {
    const int32_t group = paths[path].group;
    const bool joined = group != kNoIndex && (groups[group].kind == Group::Kind::kMulticast) == sends;
    return joined ? groups[group].first : path;
  }
};

// Returns a path for every chain of the schedule that some unit outside fan-ins takes. Every tree and every
// fan-in is a group, with a path for each branch or member. Later passes give each path a connection, and
// each group a group of the program. Linear in the links and units.
Paths ListPaths(const Schedule& schedule, const Topology& topology, const FanIns& fan_ins = {});

// Returns the times of moves, given the times of units. A unit has a move on each of its paths.
MoveTimes TimesOfMoves(const Schedule& schedule, const Paths& paths, MoveTimes times);

}  // namespace xccl::lowering
