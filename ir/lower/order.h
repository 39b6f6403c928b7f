// One order over all sends and receives of all ranks. Every later pass keeps each threadblock in this order,
// which is why a lowered program cannot deadlock: the earliest event that is not done can always go on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/lower/moves.h"
#include "ir/simulate/simulate.h"

namespace xccl::lowering {

struct Order {
  // 2m: move m is sent, 2m+1: it is received; first to last. A bundle that is sent, or received, as one has
  // one event for that, of its first move, which places them all.
  std::vector<int32_t> events;
  std::vector<int32_t> send_place;  // of every move: index in events
  std::vector<int32_t> recv_place;
  int32_t slots = 1;  // most moves of one connection that are sent and not yet received, at any place
};

// As `times` say when moves start and arrive, as far as that can be. Guarantees: 1. a move is sent before it
// is received; 2. the moves of one connection are received in the order in which they are sent; 3. what is
// sent is received before, and all sends of what a move overwrites come before it is received; 4. moves that
// write one chunk of one rank are received in the order of Move::previous, but for those of a group; 5. at
// most `slots` moves of a connection are under way, unless 1 to 4 cannot be met with so few: then
// result.slots says how many; 6. all ways of a group carry the same bundles in one order. Absent where 1 to 4
// cannot all be met. Cost: a heap operation an event.
std::optional<Order> OrderByTime(const std::vector<Move>& moves, int32_t num_connections, int32_t slots,
                                 const MoveTimes& times);

// The same guarantees, and all moves of a step come before those of the next, in the order in which they are
// sorted. Requires: moves split without times. Always there is one.
Order OrderByStep(const std::vector<Move>& moves, int32_t num_connections, int32_t slots);

}  // namespace xccl::lowering
