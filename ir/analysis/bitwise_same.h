// Finds out whether floating-point rounding gives every rank of a reduction the same bits.
#pragma once

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl {

// Returns whether all ranks that end with one sum of a chunk compute the same expression, up to the order of
// operands, and so get the same bits. Sums of different contributions are not compared. Returns true if
// nothing is reduced. Everything that one step adds to a chunk at one rank is one sum of many operands, whose
// order depends on the operands alone. Each in-switch reduction counts as an order of its own, because the
// switch chooses the order. Requires: a schedule that verifies.
bool IsBitwiseSame(const Schedule& schedule, const Collective& collective, const Topology& topology);

}  // namespace xccl
