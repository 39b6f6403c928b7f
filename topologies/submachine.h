// Submachines: some ranks of a machine and the switches, NICs and CPUs between them, for plans in which no
// other rank relays. Engines whose cost grows with the ranks of a machine plan on the members alone. Groups
// with identical surroundings have equal submachines, so one plan serves them all.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "topologies/topology.h"

namespace xccl {

struct Submachine {
  Topology topology;       // the kept hosts, nodes and links in their order; the name is the whole machine's
  std::vector<Rank> rank;  // by rank of `topology`: its rank in the whole machine, ascending
  std::vector<LinkId> link;  // by link of `topology`: its id in the whole machine, ascending
};

// Keeps the members, and the switches, NICs and CPUs on a path from one member to another that visits no
// node twice and no other GPU. All links between kept nodes stay. Requires: at least one member. Linear.
Submachine MembersAlone(const Topology& topology, std::span<const Rank> members);

// Removes the links that no transfer can use: the links of a NIC, CPU or switch that only leads back to where
// a path came from. All nodes stay. Absent if there is none. Linear.
std::optional<Topology> WithoutDeadEnds(const Topology& topology);

// Removes the links of GPUs that are not members; all nodes and ranks stay.
Topology WithoutRelays(const Topology& topology, std::span<const Rank> members);

}  // namespace xccl
