// Orders accesses to the same memory, and sends on the same link.
#pragma once

#include "ir/collective.h"
#include "ir/lower/instructions.h"
#include "ir/program.h"

namespace xccl::lowering {

// Fills program.dependencies, so that any two instructions of a rank that touch one slot, one of them writing
// it, happen in the order of their places; input and output count as the same memory where the collective has
// an in-place form. Leaves out what a threadblock already knows from its own order and its earlier waits.
// With `pace`, threadblocks of a rank whose connections begin with the same link send in the order of their
// places too: left alone, one that has much to send holds up the others, and messages meet at the far end of
// a switch that were not meant to. Cost: linear in chunks touched, and per rank in threadblocks squared.
void AddDependencies(const Places& places, const Collective& collective, bool pace, Program& program);

}  // namespace xccl::lowering
