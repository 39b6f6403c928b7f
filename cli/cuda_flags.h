// The flags that only run --backend cuda has, and what it prints beside the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "cli/command_line.h"
#include "pipeline/run.h"
#include "runtime/cuda/run_program.h"

namespace xccl {

struct CudaFlags {
  int32_t ranks_per_gpu = 1;
  std::optional<int32_t> max_ctas;
  uint64_t jitter = 0;
  bool graph = false;
  bool staged = false;
  bool interpreter = false;
  bool registered = false;
  std::string memory_limit = "1GiB";
  std::string kernel_cache;  // the default directory where it is not given
};
void AddCudaFlags(Command& command, CudaFlags& flags);

StatusOr<GpuRun> GpuRunOf(const CudaFlags& flags);
// "8 CTAs of 512 threads on a rank, 2 instances, 1 CTA a multiprocessor ...": shown with every table.
std::string DescribeUsage(const cuda::DeviceUsage& usage);

}  // namespace xccl
