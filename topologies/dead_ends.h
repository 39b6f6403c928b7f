// Links that no transfer can use: those to a NIC, CPU or switch from which the only way on is back.
#pragma once

#include <optional>

#include "topologies/topology.h"

namespace xccl {

// The same nodes without the links of dead ends: non-GPU nodes with a single neighbour, taken away until none
// is left. Absent where there is no such node. Linear.
std::optional<Topology> WithoutDeadEnds(const Topology& topology);

}  // namespace xccl
