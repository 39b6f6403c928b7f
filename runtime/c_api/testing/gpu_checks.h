// Checks of the C API on GPUs, as a program uses it: 8 ranks in this process, driven by one thread, each on a
// stream of its own. bench:cuda_api runs them on real devices, and gpu_checks_test with a driver in host
// memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runtime/cuda/driver.h"

namespace xccl::c_api {

inline constexpr int kCheckedRanks = 8;

struct GpuCheckOptions {
  // Plan books for 8 ranks: `allreduce-ring-simple`, `allgather-ring-simple`, and `scratch` for alltoall with
  // a plan that needs scratch, as tools/gpu_check makes them.
  std::string books;
  int64_t largest = 4'000'000;  // elements of a rank in one call
};

// "streams", "graph", ...
std::span<const std::string_view> GpuCheckNames();
// Errors: what went wrong first; kUsage for a name that is none.
Status RunGpuCheck(std::string_view name, const cuda::Driver& driver, const GpuCheckOptions& options);

}  // namespace xccl::c_api
