// Where the rings of an expert plan lie in the memory of GPUs. Every rank has one arena, which its peers map:
// the slots that it receives into, and the counters that its peers write. Its layout follows from the plan
// alone, so ranks exchange nothing but the arena's address. The tables that kernels read (abi.h) are made of
// the addresses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "dispatch/plan.h"
#include "runtime/experts/cuda/abi.h"

namespace xccl::dispatch {

struct GpuShape {
  int32_t workers = 1;     // threadblocks of each role
  int64_t back_bytes = 0;  // of combine's longest row; a multiple of 16
  bool operator==(const GpuShape&) const = default;
};

// The threadblocks that one role needs: as many as have the bytes in flight that fill the rank's links.
// Equal on all ranks.
int32_t ChooseWorkers(const ExpertPlan& plan);

// One rank's arena. Offsets are in bytes.
struct GpuLayout {
  std::vector<int32_t> in, out;               // by place: a hop of the plan
  std::vector<int32_t> in_begin, out_begin;   // by depth of the sender: its first place; one more at the end
  std::vector<int64_t> in_rings, down_rings;  // by place of `in`, of `out`: its first worker's ring
  int64_t out_tails = 0, up_tails = 0;        // lines of kLineBytes, by place and worker
  int64_t states = 0;                         // RingState by [in, out, up, down], place and worker
  int64_t arrived = 0, stop = 0;
  int64_t bytes = 0;
};

struct GpuLayouts {
  std::vector<GpuLayout> of_rank;
  std::vector<int32_t> in_place, out_place;  // by hop, at its receiver and at its sender
};

// Requires: the plan is proved, and its stages rise with the depth.
GpuLayouts LayOut(const ExpertPlan& plan, const GpuShape& shape);

// A rank's tables as they lie at the device's address `at`, ExpertRank first. `arenas`: by rank, as this rank
// sees them; only the addresses of peers that a hop joins are used.
std::string TablesOf(const ExpertPlan& plan, const GpuShape& shape, const GpuLayouts& layouts, int32_t rank,
                     std::span<const uint64_t> arenas, uint64_t at);

// Places of a rank: those of all tokens of all ranks; and the most entries of one rank.
int64_t PlacesOf(const Sizes& sizes);
int64_t MostEntriesOf(const Sizes& sizes);

}  // namespace xccl::dispatch
