// Plans of expert dispatch that a communicator has loaded, and the handles of their calls.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "dispatch/plan.h"
#include "dispatch/received.h"
#include "ir/numbers.h"
#include "runtime/c_api/handles.h"
#include "runtime/experts/cuda/gpu_experts.h"
#include "runtime/experts/rank.h"
#include "runtime/experts/wires.h"
#include "runtime/xccl.h"

namespace xccl::c_api {

// A plan on the GPUs of this process, for all ranks that it has.
struct ExpertsOfGpus {
  explicit ExpertsOfGpus(dispatch::ExpertPlan read) : plan(std::move(read)) {}
  const dispatch::ExpertPlan plan;
  uint64_t hash = 0;  // of the plan's file
  std::mutex mutex;   // guards `unused`
  // By rank: memory of handles that were destroyed, for the next ones. Kernels that are queued may use it:
  // the rank's later kernels run behind them, and freeing would wait for them.
  std::vector<std::vector<dispatch::GpuHandle>> unused;
  std::unique_ptr<dispatch::GpuExperts> experts;  // it goes first, since its kernels use what is above
};

// It stays where it is, since the wires and the rank point to the plan.
struct LoadedExperts {
  explicit LoadedExperts(dispatch::ExpertPlan read) : plan(std::move(read)) {}
  dispatch::ExpertPlan plan;
  std::string file = {};                // the plan's, without its folder
  std::shared_ptr<ExpertsOfGpus> gpus;  // null on the CPU, which has `wires` and `rank` instead
  std::optional<dispatch::ExpertWires> wires;
  // The communicator's thread alone calls it. Its endpoint is the communicator's, which outlives its calls.
  std::unique_ptr<dispatch::ExpertRank> rank;
};

// A handle that xcclExpertsCreate gave.
struct Experts {
  static constexpr const char* kMissing = "no such handle of experts: it was destroyed, or never made";
  Status CheckUsable() const { return OkStatus(); }
  Experts() = default;
  Experts(const Experts&) = delete;
  Experts& operator=(const Experts&) = delete;
  ~Experts();  // gives `on_gpu` back

  xcclComm_t comm = nullptr;
  std::shared_ptr<const LoadedExperts> loaded;
  int32_t rank = 0;
  std::optional<dispatch::GpuHandle> on_gpu;
  std::mutex mutex;               // guards what follows
  std::optional<int32_t> tokens;  // of its last dispatch with choices, once one was queued
  dispatch::Received ways;        // used by the communicator's thread alone
};

// Reads a proved plan for as many ranks as the communicator has.
StatusOr<std::shared_ptr<LoadedExperts>> ReadExperts(const std::string& path, int32_t ranks);

// On GPUs of one host. `read`: what became of reading; `hash`: of the plan's file. All ranks load in the same
// order. Of ranks of one process the first to come connects for all; ranks that are processes wait for each
// other.
Status LoadOnGpus(Comm& on, const StatusOr<std::shared_ptr<LoadedExperts>>& read, uint64_t hash);
Status TakeGpuHandle(Experts& experts);
// Kernels ask for more than the CPU does. Requires: the structs are checked for the CPU.
Status CheckDispatchOnGpu(const LoadedExperts& loaded, const xcclDispatchIn_t& in,
                          const xcclDispatchOut_t& out);
Status CheckCombineOnGpu(const LoadedExperts& loaded, const void* rows, const void* sums, size_t elements,
                         DataType type);
Status DispatchOnGpu(const Experts& experts, const xcclDispatchIn_t& in, const xcclDispatchOut_t& out,
                     xcclStream_t stream);
Status CombineOnGpu(const Experts& experts, const void* rows, void* sums, size_t elements, DataType type,
                    dispatch::Outputs of, xcclStream_t stream);

xcclExperts_t AddExperts(std::shared_ptr<Experts> experts);
// Errors: kUsage for a handle that is destroyed.
StatusOr<std::shared_ptr<Experts>> FindExperts(xcclExperts_t handle);
StatusOr<std::shared_ptr<Experts>> DropExperts(xcclExperts_t handle);

}  // namespace xccl::c_api
