// run --backend cuda: the flags that only it has, and one plan's run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command_line.h"
#include "ir/plan.h"
#include "runtime/cuda/run_program.h"
#include "runtime/plan_book.h"
#include "runtime/run_table.h"

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

StatusOr<cuda::GpuRunOptions> GpuOptionsOf(const CudaFlags& flags);
// Where the kernel of a plan comes from: a plan book, which may have none, or it is emitted.
struct KernelOrigin {
  bool from_book = false;
  std::vector<PlanCubin> cubins = {};  // made from it ahead of time, files being paths
  std::string source = {};  // the book's; empty: it has none, and the interpreter kernel runs the plan
};
// The interpreter kernel also runs what is too large to emit, what does not compile, and everything with
// --interpreter; the report's notice says why.
StatusOr<cuda::RunReport> RunOnCuda(const std::string& file, const Plan& plan, const KernelOrigin& origin,
                                    const CudaFlags& flags, const RunOptions& options);
// "8 CTAs of 512 threads on a rank, 2 instances, 1 CTA a multiprocessor ...": shown with every table.
std::string DescribeUsage(const cuda::DeviceUsage& usage);

}  // namespace xccl
