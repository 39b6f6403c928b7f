// A transport, which brings the messages of connections from rank to rank. Here ranks are threads, slots lie
// in one vector, and each connection has two counters. runtime/transport/shm/transport.h does the same across
// processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/transport/shared_region.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/wiring.h"

namespace xccl {

// The slots and counters that the ranks of one operation share. Outlives their ends.
struct PlainMemory {
  explicit PlainMemory(const Wiring& wiring);

  const Wiring& wiring;
  std::vector<std::byte> slots;
  std::vector<std::atomic<uint64_t>> heads, tails;  // by connection
};

class PlainTransport final : public Transport {
 public:
  // The region wakes ranks; its own slots are not used.
  PlainTransport(PlainMemory& memory, const SharedRegion& region) : memory_(memory), region_(region) {}

  ConnectionEnd At(int32_t connection) override;
  void Put(int32_t connection, int64_t bytes) override;
  void Take(int32_t connection, bool together) override;
  // Nothing is under way after Put and Take.
  StatusOr<bool> Progress() override { return false; }
  bool Flushed() const override { return true; }
  std::span<const int> files() const override { return {}; }
  bool PrepareToSleep() override { return true; }

 private:
  PlainMemory& memory_;
  const SharedRegion& region_;
};

}  // namespace xccl
