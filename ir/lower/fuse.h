// Pass "fuse": joins a receive with the send that forwards its value, so that the value is not read back.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/lower/moves.h"
#include "ir/lower/order.h"
#include "ir/lower/threadblocks.h"

namespace xccl::lowering {

struct Fusion {
  std::vector<int32_t> send_of;  // by move: the move whose send is fused with its receive, or kNoIndex
  std::vector<int32_t> recv_of;  // by move: the move whose receive is fused with its send, or kNoIndex
  bool operator==(const Fusion&) const = default;
};

// Chooses the sends that are fused. A fused send happens at the place of its receive, which is earlier than
// its own place. Guarantees that connections keep their order, and that at most `program_slots` moves of a
// connection are under way at any place. The program therefore stays free of deadlocks, as OrderMoves
// promises. Without `fuse`, no send is fused. Linear.
Fusion FuseForwards(const std::vector<Move>& moves, const Order& order, const Assignment& assignment,
                    int32_t program_slots, bool fuse);

}  // namespace xccl::lowering
