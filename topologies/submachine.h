// The machine as some of its ranks see it that nobody else carries anything for: their GPUs and the switches,
// NICs and CPUs between them. Engines that take time with every rank of a machine take it with the members
// alone there, and groups that hang alike have equal submachines, so that one plan serves them all.
#pragma once

#include <span>
#include <vector>

#include "topologies/topology.h"

namespace xccl {

struct Submachine {
  Topology topology;       // what is kept of hosts, nodes and links, in their order; the name is the whole's
  std::vector<Rank> rank;  // by rank of `topology`: the whole machine's, ascending
  std::vector<LinkId> link;  // by link of `topology`: the whole machine's, ascending
};

// The members, and of the switches, NICs and CPUs those that lie on a way from one member to another which
// passes no node twice and no other GPU; with all links between them. Requires: at least one member. Linear.
Submachine MembersAlone(const Topology& topology, std::span<const Rank> members);

// The same nodes, ranks and links but for those of GPUs that are no members.
Topology WithoutRelays(const Topology& topology, std::span<const Rank> members);

}  // namespace xccl
