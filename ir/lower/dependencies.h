// Pass "dependencies": orders accesses to the same memory, and sends on the same link.
#pragma once

#include "ir/collective.h"
#include "ir/lower/instructions.h"
#include "ir/program.h"

namespace xccl::lowering {

// Fills program.dependencies, and sets program.in_place where the collective has an in-place form. Guarantees
// rule P6: two instructions of a rank that touch one slot, one of them writing it, happen in the order of
// their places, in place too. A wait is left out where the threadblock's own order or an earlier wait implies
// it. With `pace`, threadblocks of a rank whose connections begin with the same link send in the order of
// their places, too: else one that has much to send would hold up the others, and messages would meet at the
// far end of a switch. Cost: linear in chunks touched, and per rank in threadblocks squared.
void AddDependencies(const Places& places, const Collective& collective, bool pace, Program& program);

}  // namespace xccl::lowering
