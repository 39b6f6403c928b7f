// Multicast objects over memory of several ranks, which a switch then serves: the regions of a program's
// teams (arena.h) in the ranks' arenas, and the buffers that ranks register together. If anything is missing
// or fails anywhere, all ranks of the team do without.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "runtime/cuda/arena.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/memory.h"
#include "runtime/host/exchange.h"

namespace xccl::cuda {

// One of this process.
struct SwitchRank {
  Rank rank;
  std::shared_ptr<const Gpu> gpu;
  const DeviceMemory* memory = nullptr;
  std::vector<std::optional<int64_t>> regions;  // by team of the rank: where its region in the memory begins
};

struct Switches {
  // By team; absent where this process has no rank, or no switch serves.
  std::vector<std::optional<MulticastMemory>> teams;
  std::string why_not;  // reason of the first team without a switch; "" where there is none
};

// All processes call it with the same teams, of which the ranks and the size of a region are read. `ranks`:
// their number; every rank of a team is in one process. `wanted`: false on any rank keeps its teams from the
// switch. The result must be destroyed before the memory. Errors: those of the exchange.
StatusOr<Switches> ConnectSwitches(const std::vector<Team>& teams, std::span<const SwitchRank> local,
                                   int32_t ranks, bool wanted, const Exchange& exchange);

}  // namespace xccl::cuda
