// run --backend cuda: the flags that only it has, and one plan's run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/plan.h"
#include "runtime/cuda/run_program.h"

namespace CLI {
class App;
}

namespace xccl {

struct CudaFlags {
  int32_t ranks_per_gpu = 1;
  std::optional<int32_t> max_ctas;
  uint64_t jitter = 0;
  bool graph = false;
  bool staged = false;
  std::string memory_limit = "1GiB";
  std::string kernel_cache;  // the default directory where it is not given
};
void AddCudaFlags(CLI::App& command, CudaFlags& flags);

// Fills what the flags say into options that hold the rest.
Status ApplyCudaFlags(const CudaFlags& flags, cuda::RunOptions& options);
// The plan's kernel comes from `source` where there is one (a plan book's), else the plan's program is
// emitted.
StatusOr<cuda::RunReport> RunOnCuda(const std::string& file, const Plan& plan,
                                    const std::optional<std::string>& source, const CudaFlags& flags,
                                    const cuda::RunOptions& options);
// "8 CTAs of 512 threads on a rank, 2 instances, 1 CTA a multiprocessor ...": shown with every table.
std::string DescribeUsage(const cuda::DeviceUsage& usage);

}  // namespace xccl
