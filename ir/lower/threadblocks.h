// Which threadblock serves which connection, and on which channel. A connection is a way; at the root of a
// group one threadblock serves all of its ways.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "ir/lower/moves.h"
#include "ir/lower/ways.h"
#include "ir/program.h"

namespace xccl::lowering {

struct Assignment {
  // Of every way.
  std::vector<int32_t> channel;
  std::vector<int32_t> send_block, recv_block;  // threadblock at the sender, at the receiver
  // way -> the one that its receiver's threadblock sends on; kNoMove where it sends on none. Of ways that are
  // received, or sent on, as one the first stands for all.
  std::vector<int32_t> forwards_to;
  // Threadblocks of every rank without instructions, sorted by (channel, receive peer, send peer); groups are
  // those of Ways.
  IdVector<Rank, std::vector<Threadblock>> blocks;
};

// Where `pair` is set, a receive shares a threadblock with the send that forwards it, if that is at least
// half of what either moves; paths between the same two ranks get different channels, the lowest that are
// free, and so do groups of one root. Guarantees rule P1. Cost: sorting the moves by the pair of connections
// that they join.
Assignment AssignThreadblocks(const std::vector<Move>& moves, const Ways& ways, int32_t num_ranks, bool pair);

}  // namespace xccl::lowering
