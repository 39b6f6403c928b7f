// Topologies for tests that cover many: every small digraph, and seeded random machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/topology.h"

namespace xccl::testing {

// Every strongly connected digraph on `ranks` GPUs, one per isomorphism class, with links of 1 GB/s and 500
// ns. There are 1, 1, 5 and 83 of them. Requires: 1 <= ranks <= 4.
std::vector<Topology> StronglyConnectedDigraphs(int32_t ranks);

struct RandomMachine {
  int32_t max_ranks = 8;
  int32_t max_switches = 3;
};
// A connected machine with GPUs, switches, NICs and CPUs, some switches with multicast or reduction,
// unequal bandwidths, latencies and overheads, one-way and parallel links, and one to three hosts.
Topology MakeRandomMachine(uint64_t seed, const RandomMachine& options = {});

}  // namespace xccl::testing
