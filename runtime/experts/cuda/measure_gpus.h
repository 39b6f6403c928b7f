// Runs an expert plan on GPUs of this host and on CPU ranks, and compares every bit.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/status.h"
#include "dispatch/plan.h"
#include "dispatch/routing.h"
#include "runtime/cuda/driver.h"
#include "runtime/experts/cuda/gpu_team.h"

namespace xccl::dispatch {

struct GpuMeasureOptions {
  RoutingSource routing;
  int32_t tokens = 0;  // on every rank; at most the plan's. A file has its own
  int32_t calls = 20;
  uint64_t seed = 0;
  int32_t ranks_per_gpu = 1;
  GpuTeamOptions team;  // combine's rows are of the first of its types, and as long as the plan's
};

// One dispatch or combine of one drawn routing.
struct GpuMeasured {
  Call call = Call::kDispatch;
  double time_us = 0;         // of the slowest rank's kernel
  int64_t wrong = 0;          // bytes of rows, counts, lists and sums that are not those of the CPU ranks
  int64_t logical_bytes = 0;  // rows that ranks get, with those of their own tokens, as DeepEP counts
};

// Draws choices, weights, rows and outputs. `show` gets each call when it is done. Errors: kInvalidInput
// where there are fewer GPUs than the ranks need; those of GpuTeam and ExpertTeam.
Status MeasureOnGpus(const ExpertPlan& plan, const ExpertImages& images, const cuda::Driver& driver,
                     const GpuMeasureOptions& options, const std::function<Status(const GpuMeasured&)>& show);

}  // namespace xccl::dispatch
