// Visits the sends of each connection in order. Send j may move to the place of the receive that feeds it, if
// send j-1 comes before that place and the message of send j-slots is received before it.
#include "ir/lower/fuse.h"

#include <algorithm>

namespace xccl::lowering {

Fusion FuseForwards(const std::vector<Move>& moves, const Order& order, const Assignment& assignment,
                    int32_t program_slots, bool fuse) {
  Fusion fusion;
  fusion.send_of.assign(moves.size(), kNoIndex);
  fusion.recv_of.assign(moves.size(), kNoIndex);
  if (!fuse) return fusion;
  const size_t connections = assignment.channel.size();
  const size_t slots = static_cast<size_t>(program_slots);
  std::vector<int32_t> last_place(connections, -1);  // by connection: the place of its last send
  // By connection: a ring of the places at which its last `slots` moves are received.
  std::vector<int32_t> recv_places(connections * slots, -1);
  std::vector<size_t> sends(connections, 0);
  for (int32_t event : order.events) {
    if (event % 2 != 0) continue;
    const int32_t b = event / 2, a = moves[b].feed;
    const int32_t c = moves[b].path;
    int32_t& oldest_recv = recv_places[static_cast<size_t>(c) * slots + sends[c] % slots];
    int32_t place = order.send_place[b];
    if (a != kNoIndex && fusion.send_of[a] == kNoIndex && assignment.forwards_to[moves[a].path] == c &&
        last_place[c] < order.recv_place[a] && oldest_recv < order.recv_place[a]) {
      fusion.send_of[a] = b;
      fusion.recv_of[b] = a;
      place = order.recv_place[a];
    }
    last_place[c] = place;
    // A slot is free once all moves that are sent together with b are received.
    const auto first = order.recv_place.begin();
    oldest_recv = *std::max_element(first + b, first + EndOfSent(moves, b));
    ++sends[c];
  }
  return fusion;
}

}  // namespace xccl::lowering
