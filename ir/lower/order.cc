// Sorts the events topologically. Among the events that can go on, the one with the earliest time in the
// simulation comes first. A send waits for its feed and for a slot. A receive waits for its send, for the
// receive before it on its connection, for the writes before its group, and for all reads of the value that
// the group overwrites.
//
// By time, moves of a later step may overtake moves of an earlier step on a connection. Since connections are
// first-in-first-out, the waits may then form a circle. Step by step they cannot: every value that a step
// sends is there before the step, and connections carry the moves as they are sorted. A send that lacks
// nothing but a slot is let through when no other event can go on.
#include "ir/lower/order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "ir/program.h"

namespace xccl::lowering {
namespace {

// The most bytes of a connection's slots if the form gives no number of slots and more than kFixedSlots fit.
// Few slots hold up messages that the schedule has under way; many slots take memory of the receiver. The
// runtime gives a connection as much (runtime/cuda/arena.h).
constexpr int64_t kMostInFlightBytes = 16 << 20;

int32_t SlotsFor(int64_t chunk_bytes) {
  const int64_t slots = kMostInFlightBytes / std::max<int64_t>(1, chunk_bytes);
  return static_cast<int32_t>(std::clamp<int64_t>(slots, kFixedSlots, kMaxSlots));
}

class Orderer {
 public:
  // Without `times`, events come in the order of `moves`.
  Orderer(const std::vector<Move>& moves, int32_t num_connections, int32_t slots, const MoveTimes* times)
      : moves_(moves),
        slots_(slots),
        times_(times),
        fifos_(static_cast<size_t>(num_connections)),
        unread_(moves.size(), 0),
        to_come_(moves.size(), 0),
        next_write_(moves.size(), kNoIndex),
        offered_(moves.size(), false),
        turn_(moves.size(), -1),
        turns_(static_cast<size_t>(num_connections), 0),
        fed_(moves.size(), {kNoIndex, kNoIndex}) {
    const int32_t count = static_cast<int32_t>(moves.size());
    order_.events.reserve(2 * moves.size());
    order_.send_place.assign(moves.size(), -1);
    order_.recv_place.assign(moves.size(), -1);
    for (int32_t m = 0; m < count; ++m) {
      if (At(m).overwriter != kNoIndex) ++unread_[At(m).overwriter];
      if (At(m).previous != kNoIndex) next_write_[At(m).previous] = m;
      if (At(m).receives) ++to_come_[At(m).group];
    }
  }

  // Orders the moves [begin, end). Returns false if some of them cannot be ordered. Requires that all moves
  // before `begin` are ordered.
  bool Run(int32_t begin, int32_t end) {
    for (int32_t m = begin; m < end; ++m) {
      expected_ += (At(m).sends ? 1 : 0) + (At(m).receives ? 1 : 0);
      if (!At(m).sends) continue;
      const int32_t feed = At(m).feed;
      if (IsWritten(feed)) {
        Push(2 * m);
      } else {
        int32_t& first = fed_[At(feed).group].first;
        fed_[m].next = first;
        first = m;
      }
    }
    while (true) {
      while (!heap_.empty()) {
        const int32_t event = std::get<2>(heap_.top());
        heap_.pop();
        if (event % 2 == 0) {
          TrySend(event / 2, slots_);
        } else {
          Receive(event / 2);
        }
      }
      if (static_cast<int64_t>(order_.events.size()) == expected_) return true;
      if (!LetOneThrough()) return false;
    }
  }
  Order Take() { return std::move(order_); }

 private:
  struct Fifo {
    std::vector<int32_t> sent, waiting;  // moves that were sent; moves that found no slot; both in order
    std::vector<int32_t> parked;         // moves whose bundles' turns have not come
    size_t received = 0, resumed = 0;    // how many of `sent` are received; how many of `waiting` got a slot
  };
  // A linked list of the moves that one group feeds, among the moves that Run orders.
  struct Fed {
    int32_t first, next;
  };
  using Key = std::tuple<int64_t, int32_t, int32_t>;  // time, order of equal times, event

  const Move& At(int32_t m) const { return moves_[m]; }

  // Returns whether the value that move m leaves is there, which means that its whole group is received.
  bool IsWritten(int32_t m) const { return m == kNoIndex || to_come_[At(m).group] == 0; }

  // Queues an event. Receives come before sends of the same time, because they free slots and feed sends.
  void Push(int32_t event) {
    const int32_t m = event / 2;
    if (times_ == nullptr) {
      heap_.emplace(m, 0, event);
      return;
    }
    const int32_t number = At(m).number;
    if (event % 2 == 0) {
      heap_.emplace(times_->start_ps[number], number, event);
    } else {
      heap_.emplace(times_->arrival_ps[number], -1, event);
    }
  }

  Fifo& FifoOf(int32_t m) { return fifos_[At(m).path]; }
  const Fifo& FifoOf(int32_t m) const { return fifos_[At(m).path]; }

  // Returns whether it is the turn of the move's bundle on its connection; if not, parks the move. A switch
  // adds up the k-th messages of all members, so all members must send bundles in one order. A bundle gets
  // its turn when the first of its moves could be sent; its other moves wait for that turn.
  bool IsItsTurn(int32_t m) {
    const Move& move = At(m);
    if (!IsAddedUp(moves_, move)) return true;
    Fifo& fifo = FifoOf(m);
    int32_t& turn = turn_[move.bundle];
    if (turn < 0) turn = turns_[At(move.bundle).path]++;
    if (turn == static_cast<int32_t>(fifo.sent.size())) return true;
    fifo.parked.push_back(m);
    return false;
  }
  void WakeParked(Fifo& fifo) {
    for (size_t i = 0; i < fifo.parked.size(); ++i) {
      const int32_t m = fifo.parked[i];
      if (turn_[At(m).bundle] != static_cast<int32_t>(fifo.sent.size())) continue;
      fifo.parked.erase(fifo.parked.begin() + static_cast<int64_t>(i));
      Push(2 * m);
      return;
    }
  }

  void TrySend(int32_t m, int32_t slots) {
    if (!IsItsTurn(m)) return;
    const int32_t end = EndOfSent(moves_, m);
    for (int32_t with = m; with < end; ++with) {
      Fifo& fifo = FifoOf(with);
      if (fifo.sent.size() - fifo.received < static_cast<size_t>(slots)) continue;
      fifo.waiting.push_back(m);
      full_.push_back(At(with).path);
      return;
    }
    Send(m);
  }

  void Send(int32_t m) {
    const int32_t end = EndOfSent(moves_, m);
    const int32_t place = static_cast<int32_t>(order_.events.size());
    order_.events.push_back(2 * m);
    for (int32_t with = m; with < end; ++with) {
      Fifo& fifo = FifoOf(with);
      order_.send_place[with] = place;
      fifo.sent.push_back(with);
      if (!fifo.parked.empty()) WakeParked(fifo);
      order_.slots = std::max(order_.slots, static_cast<int32_t>(fifo.sent.size() - fifo.received));
      if (fifo.sent.size() == fifo.received + 1) Offer(with);
    }
    if (At(m).overwriter != kNoIndex && --unread_[At(m).overwriter] == 0) OfferGroup(At(m).overwriter);
  }

  // Queues the receive of m unless something holds it up. Called whenever a reason to wait is gone.
  void Offer(int32_t m) {
    if (!At(m).receives) m = At(m).bundle;
    if (offered_[m]) return;
    const Move& move = At(m);
    const int32_t end = EndOfReceived(moves_, m);
    for (int32_t with = m; with < end; ++with)
      if (order_.send_place[with] < 0 || FifoOf(with).sent[FifoOf(with).received] != with) return;
    if (unread_[move.group] > 0 || !IsWritten(At(move.group).previous)) return;
    offered_[m] = true;
    Push(2 * m + 1);
  }
  void OfferGroup(int32_t first) {
    for (int32_t m = first; m != kNoIndex && At(m).group == first; m = next_write_[m]) Offer(m);
  }

  void Receive(int32_t m) {
    const int32_t place = static_cast<int32_t>(order_.events.size());
    order_.events.push_back(2 * m + 1);
    const int32_t end = EndOfReceived(moves_, m);
    for (int32_t with = m; with < end; ++with) {
      order_.recv_place[with] = place;
      ++FifoOf(with).received;
    }
    for (int32_t with = m; with < end; ++with) {
      Fifo& fifo = FifoOf(with);
      if (fifo.received < fifo.sent.size()) Offer(fifo.sent[fifo.received]);
      if (fifo.resumed < fifo.waiting.size()) Push(2 * fifo.waiting[fifo.resumed++]);
    }
    const int32_t first = At(m).group;
    if (--to_come_[first] > 0) return;
    int32_t next = first;
    while (next != kNoIndex && At(next).group == first) next = next_write_[next];
    if (next != kNoIndex) OfferGroup(next);
    for (next = fed_[first].first; next != kNoIndex; next = fed_[next].next) Push(2 * next);
  }

  // Sends one move that lacks nothing but a slot. Returns false if there is none.
  bool LetOneThrough() {
    for (; let_through_ < full_.size(); ++let_through_) {
      Fifo& fifo = fifos_[full_[let_through_]];
      if (fifo.resumed == fifo.waiting.size()) continue;
      Send(fifo.waiting[fifo.resumed++]);
      return true;
    }
    return false;
  }

  const std::vector<Move>& moves_;
  const int32_t slots_;
  const MoveTimes* const times_;
  Order order_;
  std::vector<Fifo> fifos_;          // by connection
  std::vector<int32_t> unread_;      // by the first of a group: sends to come of the value that it overwrites
  std::vector<int32_t> to_come_;     // by the first of a group: how many of its moves are not received
  std::vector<int32_t> next_write_;  // by move: the next move that writes the same chunk at the same rank
  std::vector<bool> offered_;        // by move: its receive was queued
  std::vector<int32_t> turn_;        // by the first of a bundle that a switch adds up: its turn; -1: none yet
  std::vector<int32_t> turns_;       // by the first path of a group that adds up: how many turns it has given
  std::vector<Fed> fed_;             // by move
  std::vector<int32_t> full_;        // connections in the order in which sends found no slot
  int64_t expected_ = 0;             // events of all moves that Run was called for
  size_t let_through_ = 0;           // how many entries of full_ were looked at
  std::priority_queue<Key, std::vector<Key>, std::greater<>> heap_;
};

}  // namespace

std::optional<Order> OrderByTime(const std::vector<Move>& moves, int32_t num_connections, int32_t slots,
                                 const MoveTimes& times) {
  Orderer orderer(moves, num_connections, slots, &times);
  if (!orderer.Run(0, static_cast<int32_t>(moves.size()))) return std::nullopt;
  return orderer.Take();
}

Order OrderByStep(const std::vector<Move>& moves, int32_t num_connections, int32_t slots) {
  const int32_t size = static_cast<int32_t>(moves.size());
  Orderer orderer(moves, num_connections, slots, nullptr);
  for (int32_t begin = 0; begin < size;) {
    int32_t end = begin;
    while (end < size && moves[end].step == moves[begin].step) ++end;
    XCCL_CHECK(orderer.Run(begin, end));
    begin = end;
  }
  return orderer.Take();
}

StatusOr<Ordered> OrderMoves(const Moves& moves, const MoveTimes& times, int32_t num_connections,
                             std::optional<int32_t> slots, int64_t chunk_bytes, const Split& split) {
  const int32_t num_slots = slots ? *slots : SlotsFor(chunk_bytes);
  if (std::optional<Order> order = OrderByTime(moves.moves, num_connections, num_slots, times)) {
    const size_t count = moves.moves.size();
    bool may_swap = false;
    for (size_t m = 0; m < count && !may_swap; ++m)
      may_swap = moves.moves[m].receives && moves.moves[m].group != static_cast<int32_t>(m);
    if (!may_swap) return Ordered{slots, moves, *std::move(order)};
    MoveTimes places;
    places.arrival_ps.resize(count);
    for (size_t m = 0; m < count; ++m) places.arrival_ps[moves.moves[m].number] = order->recv_place[m];
    XCCL_ASSIGN_OR_RETURN(Moves ordered, split(&places));
    return Ordered{slots, std::move(ordered), *std::move(order)};
  }
  XCCL_ASSIGN_OR_RETURN(Moves by_step, split(nullptr));
  Order order = OrderByStep(by_step.moves, num_connections, num_slots);
  return Ordered{slots, std::move(by_step), std::move(order)};
}

}  // namespace xccl::lowering
