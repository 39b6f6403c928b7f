// Orders accesses to the same memory.
#pragma once

#include "ir/collective.h"
#include "ir/lowering/instructions.h"
#include "ir/program.h"

namespace xccl::lowering {

// Fills program.dependencies, so that any two instructions of a rank that touch one slot, one of them writing
// it, happen in the order of their places; input and output count as the same memory where the collective has
// an in-place form. Leaves out what a threadblock already knows from its own order and its earlier waits.
// Cost: linear in chunks touched, and per rank in threadblocks squared.
void AddDependencies(const Places& places, const Collective& collective, Program& program);

}  // namespace xccl::lowering
