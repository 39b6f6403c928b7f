// An estimate of the work to simulate a compressed plan, before the plan is made.
#pragma once

#include <cstdint>

#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

// Returns how many transfers the simulation of a compressed plan runs if every rank's data reach every rank.
// The simulation follows the data of one rank of each orbit if no translation but the identity maps a link to
// itself, or if the plain form is too long to write out (ir/simulate/simulate.h). Otherwise it follows all
// data.
int64_t SimulatedTransfers(const Topology& topology, const SymmetryGroup& group);

}  // namespace xccl
