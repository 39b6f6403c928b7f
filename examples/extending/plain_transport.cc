#include "examples/extending/plain_transport.h"

namespace xccl {

PlainRegion::PlainRegion(const Wiring& given)
    : wiring(given),
      slots(static_cast<size_t>(given.SlotMemory())),
      heads(given.connections.size()),
      tails(given.connections.size()) {}

ConnectionEnd PlainTransport::At(int32_t connection) {
  const auto at = static_cast<size_t>(connection);
  const auto bytes =
      static_cast<size_t>(region_.wiring.slot_bytes) * static_cast<size_t>(region_.wiring.slots);
  return {.slots = region_.slots.data() + at * bytes,
          .direct = nullptr,
          .head = &region_.heads[at],
          .tail = &region_.tails[at]};
}

void PlainTransport::Put(int32_t connection, int64_t /*bytes*/) {
  region_.heads[static_cast<size_t>(connection)].fetch_add(1, std::memory_order_release);
  Change();
}

void PlainTransport::Take(int32_t connection) {
  region_.tails[static_cast<size_t>(connection)].fetch_add(1, std::memory_order_release);
  Change();
}

void PlainTransport::Change() {
  {
    const std::lock_guard lock(region_.mutex);
    ++region_.changes;
  }
  region_.changed.notify_all();
}

uint32_t PlainTransport::Ticket() const {
  const std::lock_guard lock(region_.mutex);
  return region_.changes;
}

void PlainTransport::Wait(uint32_t ticket, std::chrono::nanoseconds limit) {
  std::unique_lock lock(region_.mutex);
  region_.changed.wait_for(lock, limit,
                           [&] { return region_.changes != ticket || region_.failure.has_value(); });
}

void PlainTransport::NoteProgress() {
  const std::lock_guard lock(region_.mutex);
  ++region_.progress;
}

uint64_t PlainTransport::TotalProgress() const {
  const std::lock_guard lock(region_.mutex);
  return region_.progress;
}

void PlainTransport::Fail(const Status& status) {
  {
    const std::lock_guard lock(region_.mutex);
    if (!region_.failure) region_.failure = status;
  }
  region_.changed.notify_all();
}

std::optional<Status> PlainTransport::Failure() const {
  const std::lock_guard lock(region_.mutex);
  return region_.failure;
}

Status PlainTransport::Barrier(std::chrono::nanoseconds limit) {
  std::unique_lock lock(region_.mutex);
  if (++region_.at_barrier == region_.wiring.ranks) region_.changed.notify_all();
  const bool all = region_.changed.wait_for(
      lock, limit, [&] { return region_.at_barrier == region_.wiring.ranks || region_.failure.has_value(); });
  if (region_.failure) return *region_.failure;
  return all ? OkStatus() : LimitReached("barrier: not all ranks came within the time limit");
}

}  // namespace xccl
