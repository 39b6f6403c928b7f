// Pass "order": one order over all sends and receives of all ranks. Every later pass keeps each threadblock
// in this order, so a lowered program cannot deadlock: the earliest event that is not done can always go on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/status.h"
#include "ir/lower/moves.h"
#include "ir/simulate/simulate.h"

namespace xccl::lowering {

struct Order {
  // 2m: move m is sent; 2m+1: it is received; first to last. A bundle that is sent, or received, as one has
  // one event, of its first move, and all its moves have that event's place.
  std::vector<int32_t> events;
  std::vector<int32_t> send_place;  // of every move: index in events
  std::vector<int32_t> recv_place;
  int32_t slots = 1;  // most moves of one connection that are sent and not yet received, at any place
  bool operator==(const Order&) const = default;
};

// Follows `times`, when moves start and arrive, as far as that can be. Guarantees:
//   1. a move is sent before it is received;
//   2. the moves of one connection are received in the order in which they are sent;
//   3. a value is received before it is sent on, and it is sent before it is overwritten;
//   4. moves that write one chunk of one rank are received in the order of Move::previous, except that those
//      of one Move::group may change places;
//   5. at most `slots` moves of a connection are under way, unless 1 to 4 need more: result.slots says how
//   many;
//   6. all paths of a group carry the same bundles in one order.
// Absent where 1 to 4 cannot all be met. Cost: a heap operation an event.
std::optional<Order> OrderByTime(const std::vector<Move>& moves, int32_t num_connections, int32_t slots,
                                 const MoveTimes& times);

// The same guarantees, and all moves of a step come before those of the next, in the order in which they are
// sorted. Such an order always exists. Requires: moves split without times.
Order OrderByStep(const std::vector<Move>& moves, int32_t num_connections, int32_t slots);

// Moves, and an order that keeps their `previous` exactly.
struct Ordered {
  std::optional<int32_t> slots;  // as asked for
  Moves moves;
  Order order;
};

// SplitByRank of the schedule at hand, by these times.
using Split = std::function<StatusOr<Moves>(const MoveTimes* times)>;

// The order by time where there is one, else by step. Moves that changed places in their group are split
// again, so that additions follow the order. Where `slots` is absent, a connection has as many as 16 MiB of
// chunks of `chunk_bytes`, 8 to kMaxSlots; by step 32.
StatusOr<Ordered> OrderMoves(const Moves& moves, const MoveTimes& times, int32_t num_connections,
                             std::optional<int32_t> slots, int64_t chunk_bytes, const Split& split);

}  // namespace xccl::lowering
