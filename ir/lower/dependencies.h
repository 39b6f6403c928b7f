// Pass "dependencies": orders the accesses of a rank to one slot of memory, and its sends on one link.
#pragma once

#include "ir/collective.h"
#include "ir/lower/instructions.h"
#include "ir/program.h"

namespace xccl::lowering {

// Fills program.dependencies, and sets program.in_place if the collective has an in-place form. Guarantees
// rule P6: if two instructions of a rank access one slot, at least one of them to write, they happen in the
// order of their places (instructions.h). The rule holds for separate buffers and in place. A wait is left
// out if the threadblock's own order or an earlier wait implies it. With `pace`, threadblocks whose
// connections begin with the same link also send in the order of their places. Without `pace`, a threadblock
// with much to send holds up the other threadblocks on the link, and messages of several ranks meet at one
// receiver behind a switch. Cost: linear in the chunks accessed, and quadratic in the threadblocks of a rank.
void AddDependencies(const Places& places, const Collective& collective, bool pace, Program& program);

}  // namespace xccl::lowering
