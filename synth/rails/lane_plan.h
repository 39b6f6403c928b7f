// A broadcast over trees of hosts (synth/rails/trees.h), written down as a schedule.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "synth/rails/hosts.h"
#include "synth/rails/trees.h"
#include "topologies/topology.h"

namespace xccl {

// How data are cut: tree t has waves[t].size() chunks, which go one behind the other, of these weights.
using Waves = std::vector<std::vector<int64_t>>;

// The ways of trees' edges through the fabric.
struct TreeRoutes {
  std::vector<std::vector<std::vector<LinkId>>> ways;  // by tree and edge
  // The longest time for which streams hold a link between switches ÷ the time in which a lane carries its
  // data.
  double busiest = 0;
  int32_t streams = 1;  // the most that share a link between switches
};

// Returns ways that share links as little as FabricRoutes can. Requires: hosts with lanes, the root's first.
// Errors: kInvalidInput "ENGINE: ..." if the fabric does not join two lanes.
StatusOr<TreeRoutes> RoutesOf(const Topology& topology, std::span<const RailHost> hosts,
                              const HostTrees& trees, std::string_view engine);

// Returns the normalized schedule of copies from the root. The root hands each tree's chunks to the GPU at
// the tree's first lane, wave by wave. A host passes a tree's chunks on over its lanes. Inside a host, the
// GPU that receives a chunk sends it to the other members, or, where that fills its links for longer than a
// lane takes for all its data, to one that sends it to the rest. Requires: hosts with lanes, the root's
// first. Linear in the transfers. Errors: kInvalidInput "ENGINE: ..." if a GPU's host does not join it to
// another member.
// If `in_turns`, streams between hosts go wave by wave, so that those that share a link take turns.
// If `backwards`, the schedule is to be played backwards. The chunks of a tree then have the opposite order,
// wave 0 last.
StatusOr<Schedule> ScheduleOfLanes(const Topology& topology, const std::vector<RailHost>& hosts, Rank root,
                                   const HostTrees& trees, const TreeRoutes& routes, const Waves& waves,
                                   bool in_turns, bool backwards, std::string_view engine);

}  // namespace xccl
