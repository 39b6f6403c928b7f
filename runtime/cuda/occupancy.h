// How many blocks of a kernel a multiprocessor holds at once, from what ptxas wrote into its cubin: what a
// driver computes when it loads one, for the driver in host memory and for tests.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace xccl::cuda {

struct KernelResources {
  int32_t registers = 0;     // per thread
  int64_t shared_bytes = 0;  // per block
  bool operator==(const KernelResources&) const = default;
};

// `cubin`: a whole file. Errors: kInvalidInput "cubin: REASON", also where it has no such kernel.
StatusOr<KernelResources> ReadCubin(std::string_view cubin, std::string_view kernel);

// 0 where not even one fits. `arch`: compute capability, major * 10 + minor; an unknown one gets sm_90's
// limits. Source: NVIDIA, CUDA C++ Programming Guide, technical specifications per compute capability, and
// the rules of cuda_occupancy.h.
int32_t BlocksOnMultiprocessor(const KernelResources& kernel, int32_t arch, int32_t threads);

}  // namespace xccl::cuda
