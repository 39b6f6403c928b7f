// Expert dispatch on the GPUs of one host, whose ranks are of one process or of several. A call is one kernel
// on the caller's stream, which computes all counts; the host hands on addresses.
#include <fmt/core.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/c_api/experts.h"
#include "runtime/c_api/meeting.h"
#include "runtime/c_api/ranks.h"
#include "runtime/c_api/settings.h"
#include "runtime/communicator.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/gpu_hosts.h"
#include "runtime/cuda/other_hosts.h"
#include "runtime/experts/cuda/images.h"
#include "runtime/experts/cuda/layout.h"
#include "runtime/host/exchange.h"
#include "runtime/launched/launched_group.h"

namespace xccl::c_api {
namespace {

using dispatch::GpuExperts;

static_assert(static_cast<int>(device::ExpertOutputs::kOfRows) ==
              static_cast<int>(dispatch::Outputs::kOfRows));

std::vector<int32_t> HostsOf(const Comm& on) {
  if (on.meeting == nullptr) return {};
  return on.meeting->group()->bootstrap().hosts();
}

// Requires: the communicator's back end has been made.
dispatch::GpuExpertOptions OptionsOf(Comm& on) {
  const std::lock_guard lock(on.mutex);
  dispatch::GpuExpertOptions options;
  options.types = {DataType::kFloat, DataType::kHalf, DataType::kBfloat16};
  options.memory_limit = on.settings.cuda.arena.memory_limit;
  options.max_ctas = on.settings.cuda.max_ctas;
  options.memory_hint = options.ctas_hint = kLimitCuda;
  options.time_limit = on.communicator.time_limit();
  options.host_of = HostsOf(on);
  options.share = on.share;
  return options;
}

Status Check(Comm& on, const LoadedExperts& loaded) {
  return GpuExperts::Check(loaded.file, loaded.plan, OptionsOf(on));
}

StatusOr<std::shared_ptr<ExpertsOfGpus>> Connect(const LoadedExperts& loaded,
                                                 const std::vector<dispatch::LocalExpertRank>& ranks,
                                                 const Exchange& exchange,
                                                 const dispatch::GpuExpertOptions& options) {
  auto made = std::make_shared<ExpertsOfGpus>(loaded.plan);
  made->unused.resize(static_cast<size_t>(loaded.plan.sizes.ranks));
  const dispatch::ExpertImages images =
      TheGpus().expert_images ? TheGpus().expert_images : dispatch::ImagesOfExperts(Kernels());
  XCCL_ASSIGN_OR_RETURN(made->experts,
                        GpuExperts::Connect(loaded.file, made->plan, images, ranks, exchange, options));
  return made;
}

// All ranks, which are of this process.
StatusOr<std::shared_ptr<ExpertsOfGpus>> ConnectAll(Comm& on, const LoadedExperts& loaded, uint64_t hash) {
  dispatch::GpuExpertOptions options = OptionsOf(on);
  XCCL_ASSIGN_OR_RETURN(const cuda::Driver* driver, TheGpus().driver());
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
  XCCL_ASSIGN_OR_RETURN(std::shared_ptr<ExpertsOfGpus> made,
                        Connect(loaded, ranks, AloneExchange(), options));
  made->hash = hash;
  return made;
}

// One rank among processes of this host.
StatusOr<std::shared_ptr<ExpertsOfGpus>> ConnectProcess(Comm& on, const LoadedExperts& loaded) {
  XCCL_ASSIGN_OR_RETURN(const cuda::Driver* driver, TheGpus().driver());
  int32_t device = 0;
  {
    const std::lock_guard lock(on.mutex);
    device = *on.settings.device;
  }
  XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<const cuda::Gpu> gpu, cuda::Gpu::Open(*driver, device));
  const Rank rank = on.communicator.rank();
  if (!on.met) {
    LaunchedGroup& group = *on.meeting->group();
    const std::chrono::nanoseconds limit = on.communicator.time_limit();
    XCCL_ASSIGN_OR_RETURN(on.met, cuda::MeetOnHost(fmt::format("xccl-{}-experts", group.bootstrap().job()),
                                                   rank, OtherHostsOf(group, limit), limit));
    // Handles may outlive the communicator, whose ranks then are no concern of theirs.
    on.met->check = [meeting = std::weak_ptr(on.meeting)] {
      const std::shared_ptr<Meeting> there = meeting.lock();
      return there == nullptr ? OkStatus() : there->Error();
    };
  }
  return Connect(loaded, {{rank.value, gpu}}, *on.met, OptionsOf(on));
}

// The other ranks wait for one that cannot connect.
StatusOr<std::shared_ptr<ExpertsOfGpus>> ConnectOrTell(Comm& on, const LoadedExperts& loaded) {
  StatusOr<std::shared_ptr<ExpertsOfGpus>> made = ConnectProcess(on, loaded);
  if (made.ok()) return made;
  LaunchedGroup& group = *on.meeting->group();
  group.Fail(Annotate(made.status(), fmt::format("rank {}", on.communicator.rank().value)));
  return group.bootstrap().Failure().value_or(made.status());
}

ProgramRunner RunnerOf(const Comm& on, const std::shared_ptr<ExpertsOfGpus>& gpus) {
  ProgramRunner runner;
  runner.synchronize = [rank = on.communicator.rank(), gpus] {
    return gpus->experts->Synchronize(rank.value);
  };
  runner.error = [gpus] { return gpus->experts->Failure(); };
  runner.abort = [gpus, meeting = on.meeting](const Status& reason) {
    if (meeting != nullptr) meeting->Abort(reason);
    gpus->experts->Abort(reason);
  };
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

Status LoadOnGpus(Comm& on, const StatusOr<std::shared_ptr<LoadedExperts>>& read, uint64_t hash) {
  const auto check = [&]() -> Status {
    XCCL_RETURN_IF_ERROR(read.status());
    return Check(on, **read);
  };
  const auto connect = [&]() -> StatusOr<std::shared_ptr<ExpertsOfGpus>> {
    if (on.meeting != nullptr) return ConnectOrTell(on, **read);
    const auto make = [&] { return ConnectAll(on, **read, hash); };
    const auto fits = [&](const auto& made) { return made->hash == hash; };
    XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<ExpertsOfGpus>* made,
                          on.shared->experts.Get(on.gpu_experts, make, fits));
    ++on.gpu_experts;
    return *made;
  };
  return on.communicator.AddRunner(check, hash, [&]() -> StatusOr<ProgramRunner> {
    XCCL_ASSIGN_OR_RETURN((*read)->gpus, connect());
    return RunnerOf(on, (*read)->gpus);
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
