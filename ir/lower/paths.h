// Pass "paths": the paths of the schedule as future connections, with one rank at either end.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "topologies/topology.h"

namespace xccl::lowering {

inline constexpr int32_t kNoGroup = -1;

// A chain of links from one rank to another: a whole path of the schedule, or one branch of a tree.
struct Path {
  Rank src, dst;
  std::vector<LinkId> links;
  int32_t group = kNoGroup;  // in Paths::groups, where the path is a branch
  bool operator==(const Path&) const = default;
};

// The branches of one tree: paths[first .. first + count), in ascending order of their ranks.
struct PathGroup {
  Group::Kind kind = Group::Kind::kMulticast;
  Rank root;
  int32_t first = 0, count = 0;
  std::vector<LinkId> links;  // of the tree
  bool operator==(const PathGroup&) const = default;
};

struct Paths {
  std::vector<Path> paths;
  std::vector<PathGroup> groups;
  // PathId p of the schedule became paths[first_of[p] .. first_of[p + 1]).
  std::vector<int32_t> first_of;

  int32_t size() const { return static_cast<int32_t>(paths.size()); }
  // A multicast's sender, and a reduction's receiver, handles all paths of the group as one: the first.
  int32_t SendUnit(int32_t path) const { return Unit(path, Group::Kind::kMulticast); }
  int32_t RecvUnit(int32_t path) const { return Unit(path, Group::Kind::kReduce); }
  bool operator==(const Paths&) const = default;

 private:
  int32_t Unit(int32_t path, Group::Kind kind) const {
    const int32_t group = paths[path].group;
    return group == kNoGroup || groups[group].kind != kind ? path : groups[group].first;
  }
};

// Guarantees one path for every chain of the schedule, and for every tree a group with one path a branch.
// Later passes give each path a connection, and each group a group of the program. Linear in the links.
Paths ListPaths(const Schedule& schedule, const Topology& topology);

// From the times of every chunk of every transfer to those of every move: the chunk on each of its paths.
MoveTimes TimesOfMoves(const Schedule& schedule, const Paths& paths, MoveTimes times);

}  // namespace xccl::lowering
