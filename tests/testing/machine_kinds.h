// Random machines of the kinds that people own: regular at heart, unequal or damaged in places.
#pragma once

#include <cstddef>
#include <cstdint>

#include "topologies/topology.h"

namespace xccl::testing {

// Hosts with NVSwitch: joined by rails; with unlike NICs; in a ring. Two-socket PCIe trees with two NICs.
// Leaf-spine networks, oversubscribed, with slow uplinks. Dragonflies. Meshes with a slow row. Tori without
// one to three cables. Accelerators with links of 200, 100 and 50 GB/s, two missing. Damaged DGX-1 boxes.
inline constexpr int32_t kMachineKinds = 10;

// A machine with 4 to about max_ranks GPUs that all reach each other. Requires: 0 <= kind < kMachineKinds,
// max_ranks >= 8.
Topology MakeMachineOfKind(int32_t kind, uint64_t seed, int32_t max_ranks);

// The machine without its n-th cable (links 2n and 2n + 1), or with that at a tenth of its bandwidth.
Topology WithDamage(const Topology& topology, size_t cable, bool gone);

}  // namespace xccl::testing
