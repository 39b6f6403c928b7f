// A transport, which a back end for CPU ranks must bring. Here ranks are threads, slots lie in one vector,
// and one lock and condition variable serve everything. runtime/cpu/shared_transport.h does the same without
// the lock, and across processes.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/transport.h"
#include "runtime/wiring.h"

namespace xccl {

// The state that the ranks of one operation share. Outlives their ends.
struct PlainRegion {
  explicit PlainRegion(const Wiring& wiring);

  const Wiring& wiring;
  std::vector<std::byte> slots;
  std::vector<std::atomic<uint64_t>> heads, tails;  // by connection
  std::mutex mutex;                                 // guards what follows
  std::condition_variable changed;
  uint32_t changes = 0;
  uint64_t progress = 0;
  int32_t at_barrier = 0;
  std::optional<Status> failure;
};

class PlainTransport final : public Transport {
 public:
  PlainTransport(PlainRegion& region, Rank rank) : region_(region), rank_(rank) {}

  Rank rank() const override { return rank_; }
  int32_t ranks() const override { return region_.wiring.ranks; }
  int32_t slots() const override { return region_.wiring.slots; }
  int64_t slot_bytes() const override { return region_.wiring.slot_bytes; }
  ConnectionEnd At(int32_t connection) override;
  void Put(int32_t connection, int64_t bytes) override;
  void Take(int32_t connection) override;
  uint32_t Ticket() const override;
  void Wait(uint32_t ticket, std::chrono::nanoseconds limit) override;
  void Enter() override {}
  void Leave() override {}
  void NoteProgress() override;
  uint64_t TotalProgress() const override;
  void Fail(const Status& status) override;
  std::optional<Status> Failure() const override;
  void CheckPeers() override {}
  Status Barrier(std::chrono::nanoseconds limit) override;

 private:
  void Change();

  PlainRegion& region_;
  const Rank rank_;
};

}  // namespace xccl
