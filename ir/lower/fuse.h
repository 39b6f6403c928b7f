// Pass "fuse": joins a receive with the send that forwards its value, so that the value is not read back.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/lower/moves.h"
#include "ir/lower/order.h"
#include "ir/lower/threadblocks.h"

namespace xccl::lowering {

struct Fusion {
  std::vector<int32_t> send_of;  // of every received move: the move sent on with it, or kNoMove
  std::vector<int32_t> recv_of;  // of every sent move: the move it is fused with, or kNoMove
  bool operator==(const Fusion&) const = default;
};

// A fused send happens at the place of its receive, earlier than ordered. Guarantees that connections keep
// their order, and that at most `program_slots` moves of one are under way at any place: OrderMoves' promise
// that nothing deadlocks stays true. Without `fuse`, nothing is joined. Linear.
Fusion FuseForwards(const std::vector<Move>& moves, const Order& order, const Assignment& assignment,
                    int32_t program_slots, bool fuse);

}  // namespace xccl::lowering
