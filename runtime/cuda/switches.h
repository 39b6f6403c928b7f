// The switches that serve a program's groups. Every team (arena.h) has one multicast object, over its regions
// of the ranks' arenas. If anything is missing or fails anywhere, all ranks of the team do without.
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
  const DeviceMemory* arena = nullptr;
  const ArenaLayout* layout = nullptr;
};

struct Switches {
  std::vector<std::optional<MulticastMemory>>
      teams;            // absent where this process has no rank, or no switch serves
  std::string why_not;  // reason of the first team without a switch; "" where there is none
};

// All processes call it with the same teams. `ranks`: of the program; every rank of a team is in one process.
// `wanted`: false on any rank keeps its teams from the switch. The result must be destroyed before the
// arenas. Errors: those of the exchange.
StatusOr<Switches> ConnectSwitches(const std::vector<Team>& teams, std::span<const SwitchRank> local,
                                   int32_t ranks, bool wanted, const Exchange& exchange);

}  // namespace xccl::cuda
