// An estimate of the work to simulate a compressed plan, before the plan is made.
#pragma once

#include <cstdint>

#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

// Returns the transfers that a simulation runs where every rank's data reach every rank. Data of one rank of
// each orbit suffice if translations keep all links apart, or if the plain form is too long to write out
// (ir/simulate/simulate.h); else the data of all ranks.
int64_t SimulatedTransfers(const Topology& topology, const SymmetryGroup& group);

}  // namespace xccl
