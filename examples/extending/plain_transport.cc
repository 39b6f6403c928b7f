#include "examples/extending/plain_transport.h"

namespace xccl {

PlainMemory::PlainMemory(const Wiring& given)
    : wiring(given),
      slots(static_cast<size_t>(given.SlotMemory())),
      heads(given.connections.size()),
      tails(given.connections.size()) {}

ConnectionEnd PlainTransport::At(int32_t connection) {
  const auto at = static_cast<size_t>(connection);
  const auto bytes =
      static_cast<size_t>(memory_.wiring.slot_bytes) * static_cast<size_t>(memory_.wiring.slots);
  return {.slots = memory_.slots.data() + at * bytes,
          .num_slots = static_cast<uint64_t>(memory_.wiring.slots),
          .window = static_cast<uint64_t>(memory_.wiring.slots),
          .direct = nullptr,
          .head = &memory_.heads[at],
          .tail = &memory_.tails[at]};
}

void PlainTransport::Put(int32_t connection, int64_t /*bytes*/) {
  memory_.heads[static_cast<size_t>(connection)].fetch_add(1, std::memory_order_release);
  region_.Ring(memory_.wiring.connections[static_cast<size_t>(connection)].dst.value);
}

void PlainTransport::Take(int32_t connection, bool /*together*/) {
  memory_.tails[static_cast<size_t>(connection)].fetch_add(1, std::memory_order_release);
  region_.Ring(memory_.wiring.connections[static_cast<size_t>(connection)].src.value);
}

}  // namespace xccl
