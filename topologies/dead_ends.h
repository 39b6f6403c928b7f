// Removes links that no transfer can use: those of a NIC, CPU or switch that only leads back where it came
// from.
#pragma once

#include <optional>

#include "topologies/topology.h"

namespace xccl {

// The topology without the links of dead ends, with all its nodes. Dead ends are non-GPU nodes with a
// single neighbour, removed until none is left. Absent if there is none. Cost: linear.
std::optional<Topology> WithoutDeadEnds(const Topology& topology);

}  // namespace xccl
