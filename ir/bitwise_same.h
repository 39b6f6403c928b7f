// Whether floating point gives every rank of a reduction the same bits.
#pragma once

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// Do all ranks that end with a sum of one chunk hold the same expression up to commuting operands, so that
// floating point gives them the same bits? True when nothing is reduced. Reductions into one (rank, chunk) in
// one step are taken in column order; every in-switch reduction counts as an order of its own. Requires: a
// schedule that verifies.
bool IsBitwiseSame(const Schedule& schedule, const Collective& collective, const Topology& topology);

}  // namespace xccl
