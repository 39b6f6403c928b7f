// What carries moves: connections and groups of connections, before they have channels.
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

// From one rank to another along a chain of links: a path of the schedule, or a branch of one that is a tree.
struct Way {
  Rank src, dst;
  std::vector<LinkId> path;
  int32_t group = kNoGroup;
};

// The branches of a tree, ways[first .. first + count), in ascending order of their ranks.
struct WayGroup {
  Group::Kind kind = Group::Kind::kMulticast;
  Rank root;
  int32_t first = 0, count = 0;
  std::vector<LinkId> path;
};

struct Ways {
  std::vector<Way> ways;
  std::vector<WayGroup> groups;
  std::vector<int32_t> first_of_path;  // of PathId p: ways[first_of_path[p] .. first_of_path[p + 1])

  int32_t size() const { return static_cast<int32_t>(ways.size()); }
  // The way that stands for all that the sender, the receiver, of one sees as one: the first of its group.
  int32_t SendUnit(int32_t way) const { return Unit(way, Group::Kind::kMulticast); }
  int32_t RecvUnit(int32_t way) const { return Unit(way, Group::Kind::kReduce); }

 private:
  int32_t Unit(int32_t way, Group::Kind kind) const {
    const int32_t group = ways[static_cast<size_t>(way)].group;
    if (group == kNoGroup || groups[static_cast<size_t>(group)].kind != kind) return way;
    return groups[static_cast<size_t>(group)].first;
  }
};

// A way for every path that is a chain, a group for every one that is a tree. Linear in the paths.
Ways WaysOf(const Schedule& schedule, const Topology& topology);

// Times of every chunk of every transfer, written out for every move: a chunk on one way.
MoveTimes TimesOfMoves(const Schedule& schedule, const Ways& ways, MoveTimes times);

}  // namespace xccl::lowering
