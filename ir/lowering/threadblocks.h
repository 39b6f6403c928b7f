// Which threadblock serves which connection, and on which channel. A connection is a path of the schedule.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "ir/lowering/moves.h"
#include "ir/program.h"
#include "ir/schedule.h"

namespace xccl::lowering {

struct Assignment {
  // Of every connection, by PathId.
  std::vector<int32_t> channel;
  std::vector<int32_t> send_block, recv_block;  // threadblock at the sender, at the receiver
  // connection -> the one that its receiver's threadblock sends on; kNoMove where it sends on none.
  std::vector<int32_t> forwards_to;
  // Threadblocks of every rank without instructions, sorted by (channel, receive peer, send peer).
  IdVector<Rank, std::vector<Threadblock>> blocks;
};

// Where `pair` is set, a receive shares a threadblock with the send that forwards it, if that is at least
// half of what either moves; paths between the same two ranks get different channels, the lowest that are
// free. Guarantees rule P1. Cost: sorting the moves by the pair of connections that they join.
Assignment AssignThreadblocks(const std::vector<Move>& moves, int32_t num_ranks, int32_t num_connections,
                              bool pair);

}  // namespace xccl::lowering
