// Pass "instructions": writes the instructions, with opcodes, operands and flags.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/lower/buffers.h"
#include "ir/lower/fuse.h"
#include "ir/lower/merge.h"
#include "ir/lower/moves.h"
#include "ir/lower/order.h"
#include "ir/lower/paths.h"
#include "ir/lower/threadblocks.h"
#include "ir/program.h"

namespace xccl::lowering {

// By rank, threadblock and instruction: the instruction's place, which is the index of its event in the
// order.
using Places = IdVector<Rank, std::vector<std::vector<int32_t>>>;

// Fills program.ranks, program.connections and program.groups. Guarantees rules P1, P2 and P4. The
// instructions of a threadblock are in the order of their events. Copies from input to output, for which
// nothing waits, have threadblocks of their own: those that a rank has fewer than the rank with the most, and
// one at least.
Places WriteInstructions(const Moves& moves, const Order& order, const Assignment& assignment,
                         const Fusion& fusion, const Runs& runs, const Buffers& buffers, const Paths& paths,
                         bool reduces, Program& program);

}  // namespace xccl::lowering
