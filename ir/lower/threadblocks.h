// Pass "threadblocks": which threadblock serves which path, and on which channel. With its channel a path is
// a connection. At the root of a group one threadblock serves all of its paths.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/lower/moves.h"
#include "ir/lower/paths.h"
#include "ir/program.h"

namespace xccl::lowering {

inline constexpr int32_t kMostBlocks = 512;  // of a rank, all instances, where no other limit is given

// Each path that a rank sends on, and each that it receives on, needs a threadblock of its own there; those
// of a group that the rank handles as one need one. Errors: kInvalidInput where these alone are above
// kMostBlocks.
Status CheckConnections(const Paths& paths, int32_t num_ranks);

struct Assignment {
  // By path:
  std::vector<int32_t> channel;
  std::vector<int32_t> send_block, recv_block;  // threadblock at the sender, at the receiver
  // The path that its receiver's threadblock sends on; kNoMove where that only receives. Where a rank handles
  // the paths of a group as one, the first stands for all.
  std::vector<int32_t> forwards_to;
  // Every rank's threadblocks, without instructions, sorted by (channel, receive peer, send peer). Their
  // groups are those of Paths.
  IdVector<Rank, std::vector<Threadblock>> blocks;
};

// Guarantees rule P1. With `pair`, a receive shares a threadblock with the send that forwards its values, if
// the two have at least half of what either moves. Paths between the same two ranks get different channels,
// the lowest that are free, and so do groups of one root. Cost: sorting the moves by the pair of paths that
// they join.
Assignment AssignThreadblocks(const std::vector<Move>& moves, const Paths& paths, int32_t num_ranks,
                              bool pair);

}  // namespace xccl::lowering
