// Expert dispatch on the GPUs of one process. A call is one kernel on the caller's stream, which computes all
// counts; the host hands on addresses.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/c_api/experts.h"
#include "runtime/c_api/ranks.h"
#include "runtime/communicator.h"
#include "runtime/cuda/gpu.h"
#include "runtime/experts/cuda/images.h"
#include "runtime/experts/cuda/layout.h"
#include "runtime/host/exchange.h"

namespace xccl::c_api {
namespace {

using dispatch::GpuExperts;

static_assert(static_cast<int>(device::ExpertOutputs::kOfRows) ==
              static_cast<int>(dispatch::Outputs::kOfRows));

StatusOr<dispatch::GpuExpertOptions> OptionsOf(Comm& on, const LoadedExperts& loaded) {
  const std::lock_guard lock(on.mutex);
  dispatch::GpuExpertOptions options;
  options.types = {DataType::kFloat, DataType::kHalf, DataType::kBfloat16};
  options.memory_limit = on.settings.cuda.arena.memory_limit;
  options.memory_hint = "xcclCommLimitCuda";
  options.time_limit = on.communicator.time_limit();
  if (on.settings.cuda.max_ctas) {
    const auto roles = static_cast<int32_t>(loaded.plan.stage_of_depth.size()) + 1;
    if (*on.settings.cuda.max_ctas < roles)
      return InvalidInput(fmt::format("{}: {} CTAs on a rank; xcclCommLimitCuda allows {}", loaded.file,
                                      roles, *on.settings.cuda.max_ctas));
    options.workers = std::min(*on.settings.cuda.max_ctas / roles, dispatch::ChooseWorkers(loaded.plan));
  }
  return options;
}

// Requires: the communicator's back end has been made.
StatusOr<std::shared_ptr<ExpertsOfGpus>> ConnectAll(Comm& on, const LoadedExperts& loaded, uint64_t hash) {
  XCCL_ASSIGN_OR_RETURN(dispatch::GpuExpertOptions options, OptionsOf(on, loaded));
  XCCL_ASSIGN_OR_RETURN(const cuda::Driver* driver, TheGpus().driver());
  auto made = std::make_shared<ExpertsOfGpus>(loaded.plan);
  made->hash = hash;
  std::map<int32_t, std::shared_ptr<const cuda::Gpu>> gpus;
  std::vector<dispatch::LocalExpertRank> ranks;
  {
    const std::lock_guard lock(on.shared->mutex);
    options.share = on.shared->share;
    for (const int32_t device : on.shared->devices) {
      std::shared_ptr<const cuda::Gpu>& gpu = gpus[device];
      if (gpu == nullptr) {
        XCCL_ASSIGN_OR_RETURN(gpu, cuda::Gpu::Open(*driver, device));
      }
      ranks.push_back({static_cast<int32_t>(ranks.size()), gpu});
    }
  }
  made->unused.resize(ranks.size());
  const dispatch::ExpertImages images =
      TheGpus().expert_images ? TheGpus().expert_images : dispatch::ImagesOfExperts(Kernels());
  XCCL_ASSIGN_OR_RETURN(
      made->experts, GpuExperts::Connect(loaded.file, made->plan, images, ranks, AloneExchange(), options));
  return made;
}

ProgramRunner RunnerOf(Rank rank, const std::shared_ptr<ExpertsOfGpus>& gpus) {
  ProgramRunner runner;
  runner.synchronize = [rank, gpus] { return gpus->experts->Synchronize(rank.value); };
  runner.error = [gpus] { return gpus->experts->Failure(); };
  runner.abort = [gpus](const Status& reason) { gpus->experts->Abort(reason); };
  return runner;
}

Status CheckAligned(const char* call, std::initializer_list<std::pair<const char*, const void*>> buffers) {
  for (const auto& [name, at] : buffers)
    if (reinterpret_cast<uintptr_t>(at) % 16 != 0)
      return UsageError(fmt::format("{}: {} is at an address mod 16 of {}; expected 0 on a GPU", call, name,
                                    reinterpret_cast<uintptr_t>(at) % 16));
  return OkStatus();
}

}  // namespace

Status LoadOnGpus(Comm& on, const std::shared_ptr<LoadedExperts>& loaded, uint64_t hash) {
  return on.communicator.AddRunner([&]() -> StatusOr<ProgramRunner> {
    const auto make = [&] { return ConnectAll(on, *loaded, hash); };
    const auto fits = [&](const auto& made) { return made->hash == hash; };
    XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<ExpertsOfGpus>* made,
                          on.shared->experts.Get(on.gpu_experts, make, fits));
    ++on.gpu_experts;
    loaded->gpus = *made;
    return RunnerOf(on.communicator.rank(), *made);
  });
}

Status TakeGpuHandle(Experts& experts) {
  ExpertsOfGpus& gpus = *experts.loaded->gpus;
  {
    const std::lock_guard lock(gpus.mutex);
    std::vector<dispatch::GpuHandle>& unused = gpus.unused[static_cast<size_t>(experts.rank)];
    if (!unused.empty()) {
      experts.on_gpu = std::move(unused.back());
      unused.pop_back();
      return OkStatus();
    }
  }
  XCCL_ASSIGN_OR_RETURN(experts.on_gpu, gpus.experts->MakeHandle(experts.rank, /*host_counts=*/false));
  return OkStatus();
}

Status CheckDispatchOnGpu(const LoadedExperts& loaded, const xcclDispatchIn_t& in,
                          const xcclDispatchOut_t& out) {
  XCCL_RETURN_IF_ERROR(loaded.gpus->experts->CheckDispatch(static_cast<int64_t>(in.rowBytes),
                                                           static_cast<int64_t>(in.scaleBytes)));
  const bool has_rows = in.rowBytes > 0 || in.scaleBytes > 0 || out.homes != nullptr ||
                        out.tokens != nullptr || out.experts != nullptr || out.weights != nullptr;
  const auto places = static_cast<size_t>(dispatch::PlacesOf(loaded.plan.sizes));
  if (has_rows && out.maxRows < places)
    return UsageError(
        fmt::format("dispatch: out.maxRows is {}; expected {} or more: on a GPU each rank has {} rows",
                    out.maxRows, places, loaded.plan.sizes.max_tokens));
  return CheckAligned(
      "dispatch",
      {{"in.rows", in.rows}, {"in.scales", in.scales}, {"out.rows", out.rows}, {"out.scales", out.scales}});
}

Status CheckCombineOnGpu(const LoadedExperts& loaded, const void* rows, const void* sums, size_t elements,
                         DataType type) {
  XCCL_RETURN_IF_ERROR(CheckAligned("combine", {{"rows", rows}, {"sums", sums}}));
  return loaded.gpus->experts->CheckCombine(type, static_cast<int64_t>(elements));
}

Status DispatchOnGpu(const Experts& experts, const xcclDispatchIn_t& in, const xcclDispatchOut_t& out,
                     xcclStream_t stream) {
  const bool has_entries = out.rowOfEntry != nullptr || out.weightOfEntry != nullptr;
  dispatch::GpuDispatch buffers{
      .own_tokens = static_cast<int32_t>(in.tokens),
      .same_choices = in.sameChoices != 0,
      .experts = in.choices,
      .wide_experts = in.choiceType == xcclInt64,
      .weights = in.weights,
      .row_bytes = static_cast<int64_t>(in.rowBytes),
      .scale_bytes = static_cast<int64_t>(in.scaleBytes),
      .rows = static_cast<const char*>(in.rows),
      .scales = static_cast<const char*>(in.scales),
      .received = static_cast<char*>(out.rows),
      .received_scales = static_cast<char*>(out.scales),
      .told = {.homes = out.homes, .tokens = out.tokens, .experts = out.experts, .weights = out.weights},
      .num_rows = out.numRows,
      .rows_of_home = out.rowsOfRank,
      .rows_of_expert = out.rowsOfExpert,
      .first_of_expert = out.firstOfExpert,
      .row_of_entry = out.rowOfEntry,
      .weight_of_entry = out.weightOfEntry};
  const int64_t most = dispatch::MostEntriesOf(experts.loaded->plan.sizes);
  if (has_entries && out.maxEntries < static_cast<size_t>(most))
    buffers.most_entries = static_cast<int64_t>(out.maxEntries);
  return experts.loaded->gpus->experts->Dispatch(experts.rank, *experts.on_gpu, buffers,
                                                 static_cast<cuda::Stream>(stream));
}

Status CombineOnGpu(const Experts& experts, const void* rows, void* sums, size_t elements, DataType type,
                    dispatch::Outputs of, xcclStream_t stream) {
  const dispatch::GpuCombine buffers{.outputs_are = static_cast<device::ExpertOutputs>(of),
                                     .outputs = static_cast<const char*>(rows),
                                     .result = static_cast<char*>(sums),
                                     .type = type,
                                     .elements = static_cast<int64_t>(elements)};
  return experts.loaded->gpus->experts->Combine(experts.rank, *experts.on_gpu, buffers,
                                                static_cast<cuda::Stream>(stream));
}

}  // namespace xccl::c_api
