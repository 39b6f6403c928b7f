// The device memory that connects ranks. Every rank has one arena, which its peers map: the slots it receives
// into, its counters, what peers tell of their buffers, its threadblocks' state. Where things lie follows
// from the Program alone, so that all ranks know it of each other and only the arena's address is exchanged.
// From the addresses come the tables that a kernel reads (device/abi.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "device/abi.h"
#include "ir/program.h"
#include "runtime/cuda/driver.h"

namespace xccl::cuda {

inline constexpr int32_t kWindows = 32;  // 0: one address space; the others: registered buffers

// What every rank must have the same to be connected.
struct ArenaShape {
  int32_t instances = 1;
  int32_t slots = 2;
  int64_t slot_bytes = 0;
  int32_t blocks_per_rank = 0;
  bool operator==(const ArenaShape&) const = default;
};

struct ArenaOptions {
  int64_t slot_bytes = 0;            // wanted; 0: up to 1 MiB, and 16 MiB a connection
  int64_t memory_limit = 1LL << 30;  // of a rank's arena
};

// The shape within the limit: slots shrink to 4 KiB at least. Errors: kInvalidInput "NAME: connections of
// rank 3: ... need N bytes; the limit is M bytes; hint: --memory-limit".
StatusOr<ArenaShape> ChooseShape(const Program& program, int32_t blocks_per_rank, int32_t instances,
                                 const ArenaOptions& options, const std::string& name);

// Byte offsets within a rank's arena.
struct ArenaLayout {
  struct End {
    Rank peer;
    bool sends = false;
    size_t peer_end = 0;  // index of the other end in the peer's layout
    int64_t counter = 0;  // head where it receives, tail where it sends
    int64_t steps = 0, entry = 0;
    int64_t slots = 0;  // where it receives
  };
  std::vector<End> ends;  // [k × instances + instance], k as in device::RankArgs
  int64_t blocks = 0;     // BlockStates
  int64_t stop = 0;
  int64_t windows = 0;      // deltas: [rank of the program][kWindows]
  int64_t connections = 0;  // device::Connection, one an end
  int64_t bytes = 0;
};

// By rank. Cost: linear in connections × instances + ranks.
IdVector<Rank, ArenaLayout> LayoutArenas(const Program& program, const ArenaShape& shape);

// A rank's device::Connections. `arenas`: the address of every rank's arena as this rank sees it; only those
// of peers are read.
std::vector<device::Connection> ConnectionsOf(const IdVector<Rank, ArenaLayout>& layouts,
                                              const ArenaShape& shape, Rank rank,
                                              std::span<const DevicePointer> arenas);

}  // namespace xccl::cuda
