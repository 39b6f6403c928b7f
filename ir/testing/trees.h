// Machines whose switches multicast and reduce, and schedules over trees of links for them, which lower to
// groups.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// Ranks around one switch: link 2r leads from rank r to it, 2r + 1 back.
Topology TreeSwitch(int32_t ranks);
// Two leaf switches with `per_leaf` ranks each under one spine, once per rail.
Topology TreeLeaves(int32_t per_leaf, int32_t rails);

// Links from `root` to `ends` through switches, parents first; if into_root, from `ends` to `root`,
// children first. With one end it is a chain. `turn` picks among equally short paths.
std::vector<LinkId> TreePath(const Topology& topology, Rank root, std::span<const Rank> ends, bool into_root,
                             int32_t turn);

// Gives every connection and every group of a program that has no paths the one through a TreeSwitch.
void RouteThrough(const Topology& tree_switch, Program& program);

// A schedule of the kind's own algorithm with one or two trees per chunk: multicasts for copies to several
// ranks, in-switch reductions for sums. Chunks with one destination are sent directly. If `seed` > 0, sums
// and copies take random detours in up to three trees each.
Schedule TreeSchedule(const Collective& collective, const Topology& topology, uint64_t seed);

}  // namespace xccl
