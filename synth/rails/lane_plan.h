// A broadcast over trees of hosts (synth/rails/trees.h), written down as a schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "synth/rails/hosts.h"
#include "synth/rails/trees.h"
#include "topologies/topology.h"

namespace xccl {

// How data are cut: tree t has waves[t].size() chunks, which go one behind the other, of these weights.
using Waves = std::vector<std::vector<int64_t>>;

struct LaneSchedule {
  Schedule schedule;
  // The longest time for which messages hold a link between switches ÷ the time in which a lane carries its
  // data. Above 1, streams share links.
  double busiest = 0;
};

// Returns the normalized schedule of copies from the root. The root hands each tree's chunks to the GPU at
// the tree's first lane, wave by wave. A host passes a tree's chunks on over its lanes. Inside a host, the
// GPU that receives a chunk sends it to the other members, or, where that fills its links for longer than a
// lane takes for all its data, to one that sends it to the rest. Requires: hosts with lanes, the root's
// first. Linear in the transfers. Errors: kInvalidInput "ENGINE: ..." if the fabric does not join two lanes,
// or a GPU's host does not join it to another member.
// If `backwards`, the schedule is to be played backwards. The chunks of a tree then have the opposite order,
// wave 0 last.
StatusOr<LaneSchedule> ScheduleOfLanes(const Topology& topology, const std::vector<RailHost>& hosts,
                                       Rank root, const HostTrees& trees, const Waves& waves, bool backwards,
                                       std::string_view engine);

}  // namespace xccl
