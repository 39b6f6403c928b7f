// The memory that ranks of one host share: a header, a cell for every rank, a cell for every connection, the
// slots. It looks the same to threads (private memory), children of one process (anonymous shared memory) and
// unrelated processes (a file in memory, which they give each other). It has no name, so nothing is left
// behind however a process ends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/host/host_memory.h"
#include "runtime/host/owned_file.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/wiring.h"

namespace xccl {

enum class Sharing { kThreads, kChildren, kProcesses };

// All cells are used through lock-free atomics, which work between processes.
struct alignas(128) RankCell {
  static constexpr uint32_t kAwake = 0, kOnDoorbell = 1, kOnFiles = 2;
  std::atomic<uint32_t> doorbell{0};       // grows when a counter of this rank changes
  std::atomic<uint32_t> sleeping{kAwake};  // in a futex wait on doorbell, in a poll of files, or entering one
  std::atomic<uint32_t> inside{0};         // the rank is inside an operation
  std::atomic<uint32_t> left{0};           // the rank has destroyed its endpoint
  std::atomic<uint64_t> call_what{0}, call_which{0};  // its latest call; call_which is 0 while that changes
  alignas(64) std::atomic<uint64_t> progress{0};
};

struct ConnectionCell {
  alignas(64) std::atomic<uint64_t> head{0};  // written by the sender alone
  alignas(64) std::atomic<uint64_t> tail{0};  // written by the receiver alone
};

struct RegionHeader {
  static constexpr uint32_t kFailing = 1, kFailed = 2;
  std::atomic<uint32_t> failure{0};  // 0, kFailing (its text is being written), kFailed
  int32_t failure_code = 0;
  char failure_text[1000] = {};
  uint32_t participants = 0;                     // ranks that meet at the barrier; set before any starts
  alignas(64) std::atomic<uint32_t> arrived{0};  // at the barrier
  alignas(64) std::atomic<uint32_t> generation{0};
};

// Which connections of a wiring lie in a region: those between ranks of one host.
struct RegionLayout {
  Wiring wiring;
  std::vector<int32_t> place;   // by connection: its place in the region; -1: not there
  int32_t num_connections = 0;  // in the region
  bool operator==(const RegionLayout&) const = default;
};
RegionLayout WholeWiring(const Wiring& wiring);
// The connections whose ends both are on `host`; hosts: by rank.
RegionLayout WithinHost(const Wiring& wiring, const std::vector<int32_t>& hosts, int32_t host);
// Bytes that a region takes.
int64_t RegionBytes(const RegionLayout& layout);

// Movable owner of one mapping. Thread-safe after creation.
class SharedRegion {
 public:
  // For threads and children; slots that are never used are never backed by memory. Errors: kInvalidInput
  // with the bytes that were asked for. `participants`: ranks that take part; 0: all.
  static StatusOr<SharedRegion> Create(const Wiring& wiring, Sharing sharing, int32_t participants = 0);
  // kProcesses: a file in memory, all of it reserved. Errors: kSystem with the bytes and the reason.
  static StatusOr<OwnedFile> CreateFile(const RegionLayout& layout, int32_t participants);
  // `doorbells`: by rank, an eventfd of each rank of this host.
  static StatusOr<SharedRegion> Map(RegionLayout layout, const OwnedFile& file,
                                    std::vector<OwnedFile> doorbells);

  Sharing sharing() const { return sharing_; }
  const Wiring& wiring() const { return layout_.wiring; }
  RegionHeader& header() const;
  RankCell& rank(int32_t r) const;
  // Requires: the connection lies in the region.
  ConnectionCell& connection(int32_t c) const;
  std::byte* slots(int32_t c) const;
  // The messages of each slot that stay in their senders' buffers; null where ranks are not threads.
  DirectSource* directs(int32_t c) const;
  // Readable when the rank was rung while it slept on files; -1: none.
  int doorbell(int32_t r) const { return doorbells_.empty() ? -1 : doorbells_[r].get(); }

  // A counter of the rank has changed: wakes it.
  void Ring(int32_t r) const;
  // Sleeps until the rank is rung after the ticket, or until the limit.
  void SleepOnDoorbell(int32_t r, uint32_t ticket, std::chrono::nanoseconds limit) const;
  // Ends the operation on all ranks of the region; the first reason stays. Any thread or process may call it.
  void Fail(const Status& status) const;
  std::optional<Status> Failure() const;

 private:
  SharedRegion(RegionLayout layout, Sharing sharing, HostMemory memory);
  RegionLayout layout_;
  Sharing sharing_ = Sharing::kThreads;
  HostMemory memory_;
  std::unique_ptr<DirectSource[]> directs_;  // [place × slots + slot]
  std::vector<OwnedFile> doorbells_;
};

}  // namespace xccl
