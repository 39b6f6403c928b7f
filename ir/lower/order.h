// Pass "order": puts all sends and receives of all ranks in one order. Every later pass keeps the
// instructions of a threadblock in this order, so a program cannot deadlock: the earliest event that is not
// done can always go on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/status.h"
#include "ir/lower/moves.h"
#include "ir/simulate/simulate.h"

namespace xccl::lowering {

// The larger of the two numbers of slots that forms fix (forms.cc). If a form fixes no number, a connection
// may use at least this many slots.
inline constexpr int32_t kFixedSlots = 8;

struct Order {
  // From first to last. Event 2m sends move m, event 2m+1 receives it. A bundle that is sent, or received, at
  // once has one event, the first move's; all moves of the bundle have the place of that event.
  std::vector<int32_t> events;
  std::vector<int32_t> send_place;  // by move: the index in `events` of its send
  std::vector<int32_t> recv_place;  // by move: the index in `events` of its receive
  int32_t slots = 1;  // most moves of one connection that are under way (sent, not received) at any place
  bool operator==(const Order&) const = default;
};

// Orders events by `times`, the times at which moves start and arrive, as far as the guarantees allow:
//   1. a move is sent before it is received;
//   2. the moves of one connection are received in the order in which they are sent;
//   3. a value is received before it is sent on, and it is sent before it is overwritten;
//   4. moves that write one chunk of one rank are received in the order of Move::previous, except that the
//      moves of one Move::group may change places;
//   5. at most `slots` moves of a connection are under way, unless 1 to 4 need more; Order::slots says how
//      many;
//   6. all paths of a group carry the same bundles in one order.
// Returns nullopt if the order by `times` makes events wait in a circle. Cost: one heap operation per event.
std::optional<Order> OrderByTime(const std::vector<Move>& moves, int32_t num_connections, int32_t slots,
                                 const MoveTimes& times);

// Orders events step by step, in the order of `moves` within a step, with all guarantees of OrderByTime. An
// order of this kind always exists. Requires moves that were split without times.
Order OrderByStep(const std::vector<Move>& moves, int32_t num_connections, int32_t slots);

// Moves, and an order that keeps Move::previous even within a group.
struct Ordered {
  std::optional<int32_t> slots;  // the number of slots that was asked for
  Moves moves;
  Order order;
};

// Calls SplitByRank with `times`, for the schedule whose moves are ordered.
using Split = std::function<StatusOr<Moves>(const MoveTimes* times)>;

// Orders by time if that is possible, else by step. If moves of a group may have changed places, the schedule
// is split again, so that Move::previous follows the order. If `slots` is absent, it is the number of chunks
// of `chunk_bytes` that fill 16 MiB, but at least kFixedSlots and at most kMaxSlots.
StatusOr<Ordered> OrderMoves(const Moves& moves, const MoveTimes& times, int32_t num_connections,
                             std::optional<int32_t> slots, int64_t chunk_bytes, const Split& split);

}  // namespace xccl::lowering
