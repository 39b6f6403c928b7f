// Memory orders. Data: the sender's writes to a slot, then head.store(release); the receiver's
// head.load(acquire), then its reads. Slots come back the same way through tail.
#include "runtime/transport/shm/transport.h"

namespace xccl::shm {

ConnectionEnd ShmTransport::At(int32_t connection) {
  const ConnectionCell& cell = region_.connection(connection);
  return {.slots = region_.slots(connection),
          .num_slots = static_cast<uint64_t>(region_.wiring().slots),
          .window = static_cast<uint64_t>(region_.wiring().slots),
          .direct = region_.directs(connection),
          .head = &cell.head,
          .tail = &cell.tail};
}

void ShmTransport::Put(int32_t connection, int64_t) {
  std::atomic<uint64_t>& head = region_.connection(connection).head;
  head.store(head.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  region_.Ring(region_.wiring().connections[connection].dst.value);
}

void ShmTransport::Take(int32_t connection, bool /*together*/) {
  std::atomic<uint64_t>& tail = region_.connection(connection).tail;
  tail.store(tail.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  region_.Ring(region_.wiring().connections[connection].src.value);
}

}  // namespace xccl::shm
