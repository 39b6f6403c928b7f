// Whether floating-point rounding gives every rank of a reduction the same bits.
#pragma once

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// True if all ranks that end with a sum of one chunk compute the same expression up to commuting operands,
// and so get the same bits. True when nothing is reduced. All reductions of a step into one (rank, chunk) are
// one sum, whose order follows from its operands; every in-switch reduction counts as an order of its own.
// Requires: a schedule that verifies.
bool IsBitwiseSame(const Schedule& schedule, const Collective& collective, const Topology& topology);

}  // namespace xccl
