// Callers' buffers that ranks of other processes may reach: puts and gets then go straight to them, without a
// slot. A process has one registry, for its one rank. A registered buffer is a *window* (device/abi.h) and
// has the same number on all ranks. Every peer maps the allocation that holds it, and tells what to add to an
// address here to get its own. Where the ranks registered alike memory at one place of their allocations, and
// a switch connects their devices, the switch reaches a window on all ranks at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "runtime/cuda/arena.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/memory.h"
#include "runtime/host/exchange.h"

namespace xccl::cuda {

// Safe from any thread; the exchange must not be used by another at the same time.
class BufferRegistry {
 public:
  BufferRegistry(std::shared_ptr<const Gpu> gpu, Rank rank, Exchange exchange)
      : gpu_(std::move(gpu)), rank_(rank), exchange_(std::move(exchange)) {}

  // All processes call it in the same order, each with its buffer, of any size from 1 byte; returns its
  // window. The memory stays the caller's until Deregister. Cost: two exchanges, a mapping a peer; five where
  // devices can multicast, and a mapping more. Errors, on
  // all ranks where one has one: kInvalidInput "rank 3: REASON"; kInvalidInput for more than 31 at once.
  StatusOr<int32_t> Register(DevicePointer address, size_t bytes);
  // All processes call it in the same order, after every launch that used the buffer. It returns when all
  // have. The windows are then unknown here; tables that still have them must be written anew before the next
  // launch.
  Status Deregister(int32_t window);

  // The window that holds all of a buffer.
  std::optional<int32_t> Find(DevicePointer address, size_t bytes) const;
  // For a rank, the offset that each window adds; kUnmapped where it is not mapped there.
  std::array<uint64_t, kWindows> DeltasTo(Rank rank) const;
  // The rows of device::GroupConnection::switch_delta for a team of all ranks here.
  std::array<uint64_t, 2 * kWindows> SwitchDeltas() const;
  // The number of ranks that register together.
  int32_t ranks() const { return exchange_.parties; }
  bool switched() const;  // the switch reaches a window
  bool empty() const;

 private:
  struct Window {
    DevicePointer address = 0;
    size_t bytes = 0;
    DeviceMemory own;                                 // the allocation that holds it
    std::vector<DeviceMemory> mapped;                 // the peers' buffers of this window
    std::vector<std::pair<Rank, uint64_t>> deltas{};  // by peer
    DevicePointer bound = 0;                          // where what the switch reaches begins here
    std::optional<MulticastMemory> multicast{};
  };
  Status Switch(const std::vector<Parcel>& offers, Window& window) const;
  Status Map(const std::vector<Parcel>& offers, Window& window, std::vector<uint64_t>& seen) const;

  const std::shared_ptr<const Gpu> gpu_;
  const Rank rank_;
  const Exchange exchange_;
  mutable std::mutex mutex_;  // guards what follows
  std::array<std::optional<Window>, kWindows> windows_;
};

}  // namespace xccl::cuda
