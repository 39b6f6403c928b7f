// Pass "threadblocks": gives every path a threadblock at its sender, one at its receiver, and a channel. A
// path with a channel is a connection. At the root of a group one threadblock serves all paths of the group.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/lower/moves.h"
#include "ir/lower/paths.h"
#include "ir/program.h"

namespace xccl::lowering {

// The most threadblocks of a rank, in all instances, if the caller gives no limit. All of them must run at
// once. An H100 runs 528 threadblocks of 512 threads: 132 multiprocessors × 2,048 threads (H100 datasheet).
inline constexpr int32_t kMostBlocks = 512;

// Checks that no rank needs more than kMostBlocks threadblocks for its paths in one direction. Each path that
// a rank sends on, and each path that it receives on, needs a threadblock of its own; all paths of a group
// need one at the group's root. Errors: kInvalidInput.
Status CheckConnections(const Paths& paths, int32_t num_ranks);

struct Assignment {
  // By path:
  std::vector<int32_t> channel;
  std::vector<int32_t> send_block, recv_block;  // the threadblock at the sender; at the receiver
  // The path on which the threadblock that receives this path sends; kNoIndex: the threadblock only receives.
  // At the root of a group, the group's first path stands for all its paths.
  std::vector<int32_t> forwards_to;
  // By rank: threadblocks without instructions, sorted by (channel, receive peer, send peer). Threadblocks
  // name groups by their index in Paths.
  IdVector<Rank, std::vector<Threadblock>> blocks;
};

// Makes a threadblock for every path at its sender and one at its receiver. Fills send_block, recv_block and
// blocks from channel and forwards_to. Requires that `blocks` has an empty entry for each rank, and every
// other field an entry for each path.
void MakeBlocks(const Paths& paths, Assignment& assignment);

// Returns an assignment that meets rule P1. With `pair`, an incoming path may share a threadblock with an
// outgoing path to which its values are forwarded. The forwarded moves must be at least half of the moves of
// each of the two paths. Paths between the same two ranks get different channels, the lowest free ones, and
// so do groups of one root. Cost: sorting the moves by the pair of paths that they join.
Assignment AssignThreadblocks(const std::vector<Move>& moves, const Paths& paths, int32_t num_ranks,
                              bool pair);

}  // namespace xccl::lowering
