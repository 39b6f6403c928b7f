// Pass "instructions": opcodes, operands and flags.
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

// Fills program.ranks, program.connections and program.groups. Guarantees rules P1, P2 and P4, and every
// threadblock's instructions in the order of the events. Local copies, which nothing waits for, have a
// threadblock of their own. Returns for every rank and threadblock the place of each instruction: the index
// of its event.
using Places = IdVector<Rank, std::vector<std::vector<int32_t>>>;
Places WriteInstructions(const Moves& moves, const Order& order, const Assignment& assignment,
                         const Fusion& fusion, const Runs& runs, const Buffers& buffers, const Paths& paths,
                         bool reduces, Program& program);

}  // namespace xccl::lowering
