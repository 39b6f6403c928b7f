// The memory that ranks of one host share: a header, a cell for every rank, a cell for every connection, the
// slots. It looks the same to threads (private memory), children of one process (anonymous shared memory) and
// unrelated processes (POSIX shared memory). The name of the last is removed as soon as all have it, so
// nothing is left behind however a process ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "runtime/host_memory.h"
#include "runtime/transport.h"
#include "runtime/wiring.h"

namespace xccl {

enum class Sharing { kThreads, kChildren, kNamed };

// All cells are used through lock-free atomics, which work between processes.
struct alignas(128) RankCell {
  std::atomic<uint32_t> doorbell{0};  // grows when a counter of this rank changes
  std::atomic<uint32_t> sleeping{0};  // the rank is in a futex wait on doorbell, or enters one
  std::atomic<uint32_t> inside{0};    // the rank is inside an operation
  std::atomic<uint32_t> left{0};      // the rank is done with the region and will not use it again
  std::atomic<int32_t> pid{0};
  alignas(64) std::atomic<uint64_t> progress{0};
};

struct ConnectionCell {
  alignas(64) std::atomic<uint64_t> head{0};  // written by the sender alone
  alignas(64) std::atomic<uint64_t> tail{0};  // written by the receiver alone
};

struct RegionHeader {
  static constexpr uint32_t kFailing = 1, kFailed = 2;
  std::atomic<uint64_t> ready{0};    // kNamed: the creator has sized and filled the region
  std::atomic<uint32_t> failure{0};  // 0, kFailing (its text is being written), kFailed
  int32_t failure_code = 0;
  char failure_text[1000] = {};
  int32_t creator = 0;                           // process id
  uint32_t participants = 0;                     // ranks that meet at the barrier; set before any starts
  alignas(64) std::atomic<uint32_t> arrived{0};  // at the barrier
  alignas(64) std::atomic<uint32_t> generation{0};
};

// Movable owner of one mapping. Thread-safe after creation.
class SharedRegion {
 public:
  // Errors: kInvalidInput with the bytes that were asked for.
  // `participants`: ranks that take part; 0: all.
  static StatusOr<SharedRegion> Create(const Wiring& wiring, Sharing sharing, const std::string& name = "",
                                       int32_t participants = 0);
  // kNamed, the other ranks: fails with kLimit when there is no such region yet.
  static StatusOr<SharedRegion> Open(const Wiring& wiring, const std::string& name);
  // Removes the name; the memory stays until all have unmapped it. Harmless twice.
  static void Unlink(const std::string& name);

  Sharing sharing() const { return sharing_; }
  const Wiring& wiring() const { return wiring_; }
  RegionHeader& header() const;
  RankCell& rank(int32_t r) const;
  ConnectionCell& connection(int32_t c) const;
  std::byte* slots(int32_t c) const;
  // The messages of each slot that stay in their senders' buffers; null where ranks are not threads.
  DirectSource* directs(int32_t c) const;

 private:
  SharedRegion(Wiring wiring, Sharing sharing, HostMemory memory);
  Wiring wiring_;
  Sharing sharing_ = Sharing::kThreads;
  HostMemory memory_;
  std::unique_ptr<DirectSource[]> directs_;  // [connection × slots + slot]
};

// Bytes that a region takes; slots that are never used are never backed by memory.
int64_t RegionBytes(const Wiring& wiring);

}  // namespace xccl
