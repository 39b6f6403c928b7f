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

// By rank, threadblock and instruction: the instruction's place, the index of its event in Order::events.
using Places = IdVector<Rank, std::vector<std::vector<int32_t>>>;

// Fills program.ranks, program.connections and program.groups, and returns the places of the instructions.
// Guarantees rules P1, P2 and P4. The instructions of a threadblock are in the order of their events. Nothing
// waits for a copy from input to output, so copies have threadblocks of their own. A rank with copies has at
// least one of them, and more while another rank has more threadblocks, up to one for each chunk.
Places WriteInstructions(const Moves& moves, const Order& order, const Assignment& assignment,
                         const Fusion& fusion, const Runs& runs, const Buffers& buffers, const Paths& paths,
                         bool reduces, Program& program);

}  // namespace xccl::lowering
