// An ExpertTeam whose ranks are GPUs of this process: it copies a call's inputs to the devices, runs the
// kernels, and copies their results back into the form that the CPU ranks give. For `run`, and for tests that
// compare the two.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/status.h"
#include "runtime/experts/cuda/gpu_experts.h"
#include "runtime/experts/team.h"

namespace xccl::dispatch {

struct GpuTeamOptions {
  GpuExpertOptions experts;
  bool graph = false;         // dispatch, and combine of each type and row, are captured once and replayed
  bool wide_experts = false;  // choices are int64_t on the device, as those of PyTorch's topk
};

class GpuTeam : public ExpertTeam {
 public:
  // gpus: by rank; ranks may share one. Combine takes what the last Dispatch returned, whose handle it keeps.
  // Errors: those of GpuExperts::Connect; kLimit where the devices' memory does not hold the buffers.
  // Requires: the plan is proved and outlives the team.
  static StatusOr<std::unique_ptr<GpuTeam>> Create(const ExpertPlan& plan, const ExpertImages& images,
                                                   std::vector<std::shared_ptr<const cuda::Gpu>> gpus,
                                                   const GpuTeamOptions& options);

  // The longest time of a rank's kernel in the last call.
  virtual double last_call_us() const = 0;
  virtual const GpuExperts& experts() const = 0;
  // Whether the counts that kernels wrote to memory of the host were those of the last dispatch.
  virtual bool host_counts_agree() const = 0;
};

}  // namespace xccl::dispatch
