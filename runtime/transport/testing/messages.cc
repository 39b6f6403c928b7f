#include "runtime/transport/testing/messages.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <array>

namespace xccl {
namespace {

using Clock = std::chrono::steady_clock;

std::byte Value(int32_t connection, uint64_t message, int64_t at) {
  return static_cast<std::byte>(connection * 31 + static_cast<int64_t>(message) * 7 + at + (at >> 9));
}

Wiring WiringWith(int32_t ranks, int64_t slot_bytes, std::vector<ConnectionKey> connections) {
  std::ranges::sort(connections);
  connections.erase(std::unique(connections.begin(), connections.end()), connections.end());
  return {.ranks = ranks, .connections = std::move(connections), .slots = 2, .slot_bytes = slot_bytes};
}

// One connection's messages.
struct Lane {
  int32_t connection = 0;
  bool sends = false;
  uint64_t done = 0;
};

// Puts or takes one message where the lane lets it.
bool Step(Transport& transport, Lane& lane, int64_t slot_bytes, Carried& carried) {
  const ConnectionEnd end = transport.At(lane.connection);
  std::byte* const slot = end.slots + static_cast<int64_t>(lane.done % end.num_slots) * slot_bytes;
  const int64_t bytes = BytesOf(lane.done, slot_bytes);
  if (lane.sends) {
    if (lane.done - end.tail->load(std::memory_order_acquire) >= end.num_slots) return false;
    for (int64_t i = 0; i < bytes; ++i) slot[i] = Value(lane.connection, lane.done, i);
    transport.Put(lane.connection, bytes);
  } else {
    if (end.head->load(std::memory_order_acquire) == lane.done) return false;
    for (int64_t i = 0; i < bytes; ++i)
      carried.wrong += slot[i] == Value(lane.connection, lane.done, i) ? 0 : 1;
    transport.Take(lane.connection, lane.done % 100 < 50);
    ++carried.messages;
  }
  ++lane.done;
  return true;
}

}  // namespace

Wiring AllPairs(int32_t ranks, int32_t channels, int64_t slot_bytes) {
  std::vector<ConnectionKey> keys;
  for (int32_t a = 0; a < ranks; ++a)
    for (int32_t b = 0; b < ranks; ++b)
      for (int32_t c = 0; c < channels && a != b; ++c) keys.push_back({Rank(a), Rank(b), c});
  return WiringWith(ranks, slot_bytes, std::move(keys));
}

Wiring RingOf(int32_t ranks, int32_t channels, int64_t slot_bytes) {
  std::vector<ConnectionKey> keys;
  for (int32_t a = 0; a < ranks; ++a)
    for (int32_t c = 0; c < channels; ++c) {
      keys.push_back({Rank(a), Rank((a + 1) % ranks), c});
      keys.push_back({Rank((a + 1) % ranks), Rank(a), c});
    }
  return WiringWith(ranks, slot_bytes, std::move(keys));
}

Wiring StarOf(int32_t ranks, int32_t channels, int64_t slot_bytes) {
  std::vector<ConnectionKey> keys;
  for (int32_t a = 1; a < ranks; ++a)
    for (int32_t c = 0; c < channels; ++c) {
      keys.push_back({Rank(0), Rank(a), c});
      keys.push_back({Rank(a), Rank(0), c});
    }
  return WiringWith(ranks, slot_bytes, std::move(keys));
}

int64_t BytesOf(uint64_t message, int64_t slot_bytes) {
  const std::array<int64_t, 6> sizes = {slot_bytes, 1, 0, 64, 17, slot_bytes / 2};
  return std::min(slot_bytes, sizes[message % sizes.size()]);
}

StatusOr<Carried> Carry(const Wiring& wiring, const std::vector<int32_t>& hosts, Transport& transport,
                        Rank rank, uint64_t messages, std::chrono::milliseconds limit) {
  std::vector<Lane> lanes;
  for (size_t c = 0; c < wiring.connections.size(); ++c) {
    const ConnectionKey& key = wiring.connections[c];
    if (hosts[key.src.index()] == hosts[key.dst.index()]) continue;
    if (key.src == rank || key.dst == rank)
      lanes.push_back({.connection = static_cast<int32_t>(c), .sends = key.src == rank});
  }
  Carried carried;
  Clock::time_point since = Clock::now();
  while (true) {
    XCCL_ASSIGN_OR_RETURN(bool moved, transport.Progress());
    bool all = true;
    for (Lane& lane : lanes) {
      if (lane.done < messages) moved = Step(transport, lane, wiring.slot_bytes, carried) || moved;
      all = all && lane.done == messages;
    }
    if (all && transport.Flushed()) return carried;
    if (moved) since = Clock::now();
    if (Clock::now() - since > limit)
      return LimitReached(fmt::format("rank {}: nothing moved for {} ms", rank.value, limit.count()));
    if (moved || !transport.PrepareToSleep()) continue;
    std::vector<pollfd> files;
    for (const int file : transport.files()) files.push_back({file, POLLIN, 0});
    ++carried.slept;
    poll(files.data(), files.size(), 100);
  }
}

}  // namespace xccl
