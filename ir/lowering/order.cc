// Within a step, rounds: every connection sends while it has free slots, then every connection receives, in
// its order, what nobody on the receiving rank still has to send as it was before. A round in which nothing
// moves means that the slots are too few; then one more send is let through.
#include "ir/lowering/order.h"

#include <algorithm>
#include <span>

namespace xccl::lowering {
namespace {

// The moves of one connection in the step at hand, in order.
struct Lane {
  std::vector<int32_t> moves;
  size_t sent = 0, received = 0;
};

class StepOrderer {
 public:
  StepOrderer(const std::vector<Move>& moves, int32_t num_connections, int32_t slots, Order& order)
      : moves_(moves),
        slots_(slots),
        order_(order),
        lanes_(static_cast<size_t>(num_connections)),
        waits_for_(moves.size(), kNoMove),
        counter_of_(moves.size(), 0),
        after_(moves.size(), kNoMove) {}

  void Run(int32_t begin, int32_t end) {
    Open(begin, end);
    while (!busy_.empty()) {
      bool moved = false;
      for (int32_t l : busy_) moved |= SendSome(lanes_[static_cast<size_t>(l)], slots_);
      for (int32_t l : busy_) moved |= ReceiveSome(lanes_[static_cast<size_t>(l)]);
      if (!moved) LetOneThrough();
      std::erase_if(busy_, [&](int32_t l) {
        Lane& lane = lanes_[static_cast<size_t>(l)];
        if (lane.received < lane.moves.size()) return false;
        lane = Lane();
        return true;
      });
    }
  }

 private:
  // Fills the lanes and counts, for every (chunk, rank), the sends that must come before a write.
  void Open(int32_t begin, int32_t end) {
    unsent_.clear();
    for (int32_t m = begin; m < end;) {
      int32_t group_end = m;
      while (group_end < end && moves_[group_end].chunk == moves_[m].chunk) ++group_end;
      ++stamp_;
      for (int32_t i = m; i < group_end; ++i) {
        auto& [stamp, counter] = counter_of_rank(moves_[i].src);
        if (stamp != stamp_) {
          stamp = stamp_;
          counter = static_cast<int32_t>(unsent_.size());
          unsent_.push_back(0);
        }
        ++unsent_[static_cast<size_t>(counter)];
        counter_of_[i] = counter;
      }
      for (int32_t i = m; i < group_end; ++i) {
        const auto& [stamp, counter] = counter_of_rank(moves_[i].dst);
        if (stamp == stamp_) waits_for_[i] = counter;
        auto& [write_stamp, write] = last_write_of_rank(moves_[i].dst);
        if (write_stamp == stamp_) after_[i] = write;
        write_stamp = stamp_;
        write = i;
        Lane& lane = lanes_[moves_[i].path.index()];
        if (lane.moves.empty()) busy_.push_back(moves_[i].path.value);
        lane.moves.push_back(i);
      }
      m = group_end;
    }
  }

  std::pair<int64_t, int32_t>& counter_of_rank(Rank r) {
    if (r.index() >= rank_counter_.size()) rank_counter_.resize(r.index() + 1, {0, 0});
    return rank_counter_[r.index()];
  }

  std::pair<int64_t, int32_t>& last_write_of_rank(Rank r) {
    if (r.index() >= rank_write_.size()) rank_write_.resize(r.index() + 1, {0, 0});
    return rank_write_[r.index()];
  }

  void Send(Lane& lane) {
    const int32_t m = lane.moves[lane.sent++];
    order_.send_place[m] = static_cast<int32_t>(order_.events.size());
    order_.events.push_back(2 * m);
    --unsent_[static_cast<size_t>(counter_of_[m])];
    order_.slots = std::max(order_.slots, static_cast<int32_t>(lane.sent - lane.received));
  }

  bool SendSome(Lane& lane, int32_t limit) {
    bool moved = false;
    for (; lane.sent < lane.moves.size() && lane.sent - lane.received < static_cast<size_t>(limit);
         moved = true)
      Send(lane);
    return moved;
  }

  bool ReceiveSome(Lane& lane) {
    bool moved = false;
    for (; lane.received < lane.sent; moved = true) {
      const int32_t m = lane.moves[lane.received];
      if (waits_for_[m] != kNoMove && unsent_[static_cast<size_t>(waits_for_[m])] > 0) break;
      if (after_[m] != kNoMove && order_.recv_place[after_[m]] < 0) break;
      order_.recv_place[m] = static_cast<int32_t>(order_.events.size());
      order_.events.push_back(2 * m + 1);
      ++lane.received;
    }
    return moved;
  }

  void LetOneThrough() {
    for (int32_t l : busy_) {
      Lane& lane = lanes_[static_cast<size_t>(l)];
      if (lane.sent == lane.moves.size()) continue;
      Send(lane);
      return;
    }
  }

  const std::vector<Move>& moves_;
  const int32_t slots_;
  Order& order_;
  std::vector<Lane> lanes_;          // by connection
  std::vector<int32_t> busy_;        // lanes with moves left in this step
  std::vector<int32_t> unsent_;      // sends to come, by counter
  std::vector<int32_t> waits_for_;   // by move: the counter its receive waits for
  std::vector<int32_t> counter_of_;  // by move: the counter its send lowers
  std::vector<int32_t> after_;  // by move: the one whose receive writes the same chunk in the step before it
  std::vector<std::pair<int64_t, int32_t>> rank_counter_;  // by rank: (stamp, counter) of the chunk at hand
  std::vector<std::pair<int64_t, int32_t>> rank_write_;    // by rank: (stamp, move) of its last receive
  int64_t stamp_ = 0;
};

}  // namespace

Order OrderMoves(const std::vector<Move>& moves, int32_t num_connections, int32_t slots) {
  Order order;
  order.events.reserve(2 * moves.size());
  order.send_place.resize(moves.size());
  order.recv_place.assign(moves.size(), -1);
  StepOrderer orderer(moves, num_connections, slots, order);
  const int32_t size = static_cast<int32_t>(moves.size());
  for (int32_t begin = 0; begin < size;) {
    int32_t end = begin;
    while (end < size && moves[static_cast<size_t>(end)].step == moves[static_cast<size_t>(begin)].step)
      ++end;
    orderer.Run(begin, end);
    begin = end;
  }
  return order;
}

}  // namespace xccl::lowering
