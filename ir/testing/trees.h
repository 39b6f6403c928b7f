// Machines whose switches multicast and reduce, and schedules over trees of links for them: what becomes
// groups.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// Ranks around one switch: link 2r leads from rank r to it, 2r + 1 back.
Topology TreeSwitch(int32_t ranks);
// Two leaves of `per_leaf` ranks each under one spine; and the same twice, side by side: two rails.
Topology TreeLeaves(int32_t per_leaf, int32_t rails);

// Links from `root` to `ends` through switches, parents first; backwards, children first. One end: a chain.
// `turn` picks among equally short ways.
std::vector<LinkId> TreePath(const Topology& topology, Rank root, std::span<const Rank> ends, bool into_root,
                             int32_t turn);

// The kind's own algorithm with one tree, or two, a chunk: multicasts for copies to several ranks, reductions
// in switches for sums; what has one destination alone goes directly. `seed` above 0: the sums and the copies
// take random detours, in up to three trees each.
Schedule TreeSchedule(const Collective& collective, const Topology& topology, uint64_t seed);

}  // namespace xccl
