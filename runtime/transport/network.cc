#include "runtime/transport/network.h"

#include <fmt/core.h>

#include <algorithm>

namespace xccl {

NetworkLayout NetworkLayoutOf(const Wiring& wiring, const std::vector<int32_t>& hosts, int32_t num_slots,
                              Rank rank) {
  NetworkLayout layout;
  layout.rank = rank;
  layout.slot_bytes = wiring.slot_bytes;
  layout.num_slots = num_slots;
  layout.needed_slots = wiring.slots;
  layout.window = std::min(num_slots, 2 * wiring.slots);
  const int64_t bytes = num_slots * wiring.slot_bytes;
  std::vector<int32_t> cells(static_cast<size_t>(wiring.ranks), 0);  // given out so far, by rank
  for (size_t c = 0; c < wiring.connections.size(); ++c) {
    const ConnectionKey& key = wiring.connections[c];
    if (hosts[key.src.index()] == hosts[key.dst.index()]) continue;
    const int32_t src = cells[key.src.index()]++, dst = cells[key.dst.index()]++;
    if (key.src != rank && key.dst != rank) continue;
    const bool sends = key.src == rank;
    const Rails of = wiring.rails.empty() ? Rails() : wiring.rails[c];
    RemoteConnection made{.connection = static_cast<int32_t>(c), .peer = sends ? key.dst : key.src};
    made.sends = sends;
    made.rail = sends ? of.src : of.dst;
    made.peer_rail = sends ? of.dst : of.src;
    made.cell = sends ? src : dst;
    made.peer_cell = sends ? dst : src;
    made.slots_at = made.cell * bytes;
    made.peer_slots_at = made.peer_cell * bytes;
    layout.connections.push_back(made);
  }
  return layout;
}

Status WrongSignal(const std::string& peer, const std::string& rail, bool sends, uint64_t head, uint64_t tail,
                   int32_t num_slots) {
  const auto slots = static_cast<uint64_t>(num_slots);
  if (sends)
    return SystemError(fmt::format("signal of {} over {}: {} messages taken; expected {} to {}", peer, rail,
                                   tail, head - std::min(head, slots), head));
  return SystemError(fmt::format("signal of {} over {}: message {}; expected messages {} to {}, each once",
                                 peer, rail, head, tail + 1, tail + slots));
}

}  // namespace xccl
