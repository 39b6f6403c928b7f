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

// The weights of each tree's chunks: [tree][wave]. The chunks follow each other over the tree's edges.
using Waves = std::vector<std::vector<int64_t>>;

// For each edge of the trees, its way through the fabric.
struct TreeRoutes {
  std::vector<std::vector<std::vector<LinkId>>> ways;  // by tree and edge
  // The longest time for which streams hold a link between switches ÷ the time of a lane for its data.
  double busiest = 0;
  int32_t streams = 1;  // the most streams that share a link between switches
};

// Returns the ways for the trees' edges, which share links as little as FabricRoutes can. Requires: hosts
// with lanes, the root's first. Errors: kInvalidInput "ENGINE: ..." if the fabric does not join two lanes.
StatusOr<TreeRoutes> RoutesOf(const Topology& topology, std::span<const RailHost> hosts,
                              const HostTrees& trees, std::string_view engine);

// Returns the normalized schedule of copies from the root. Wave by wave, the root hands each tree's chunks to
// the GPU at the tree's first lane. Hosts pass the chunks on over their lanes. Inside a host, the GPU that
// receives a chunk sends it to the other members. If this fills the GPU's links for longer than a lane takes
// for all its data, a multicast or another member spreads the chunk instead. Requires: hosts with lanes, the
// root's first. Linear in the transfers. Errors: kInvalidInput "ENGINE: ..." if no path inside a host joins
// two members.
// If `in_turns`, streams between hosts go wave by wave, so that streams that share a link take turns.
// If `backwards`, the schedule is to be played backwards. Each tree's chunks are then numbered backwards,
// wave 0 last.
StatusOr<Schedule> ScheduleOfLanes(const Topology& topology, const std::vector<RailHost>& hosts, Rank root,
                                   const HostTrees& trees, const TreeRoutes& routes, const Waves& waves,
                                   bool in_turns, bool backwards, std::string_view engine);

}  // namespace xccl
