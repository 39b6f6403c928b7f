#include "runtime/experts/cuda/measure_gpus.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "runtime/experts/team.h"

namespace xccl::dispatch {
namespace {

StatusOr<std::vector<std::shared_ptr<const cuda::Gpu>>> PlaceRanks(const cuda::Driver& driver, int32_t ranks,
                                                                   int32_t ranks_per_gpu) {
  int devices = 0;
  XCCL_RETURN_IF_ERROR(cuda::Check(driver, driver.DeviceGetCount(&devices), "cuDeviceGetCount"));
  if (ranks > devices * ranks_per_gpu)
    return InvalidInput(fmt::format("cuda: {} ranks on {} device{}, {} on each; hint: --ranks-per-gpu {}",
                                    ranks, devices, devices == 1 ? "" : "s", ranks_per_gpu,
                                    (ranks + devices - 1) / std::max(1, devices)));
  std::vector<std::shared_ptr<const cuda::Gpu>> gpus;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    if (rank % ranks_per_gpu != 0) {
      gpus.push_back(gpus.back());
      continue;
    }
    XCCL_ASSIGN_OR_RETURN(std::shared_ptr<const cuda::Gpu> gpu,
                          cuda::Gpu::Open(driver, rank / ranks_per_gpu));
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

Routing DrawCall(const ExpertPlan& plan, const GpuMeasureOptions& options, Random& random) {
  Sizes sizes = plan.sizes;
  sizes.max_tokens = options.tokens;
  Routing routing = DrawRouting(options.routing, sizes, random);
  routing.weights.resize(routing.experts.size());
  for (float& weight : routing.weights) weight = static_cast<float>(random.Unit());
  return routing;
}

Rows DrawBytes(int64_t count, Random& random) {
  Rows bytes(static_cast<size_t>(count));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Below(256));
  return bytes;
}

// Numbers from -1 to 1, whose sums round.
Rows DrawOutputs(int64_t count, DataType type, Random& random) {
  Rows bytes(static_cast<size_t>(count * SizeOf(type)));
  for (std::byte* at = bytes.data(); at < bytes.data() + bytes.size(); at += SizeOf(type)) {
    const auto value = static_cast<float>(2 * random.Unit() - 1);
    const uint16_t narrow = type == DataType::kHalf ? FloatToHalf(value) : FloatToBfloat16(value);
    if (type == DataType::kFloat)
      std::memcpy(at, &value, sizeof value);
    else
      std::memcpy(at, &narrow, sizeof narrow);
  }
  return bytes;
}

template <class T>
int64_t Differ(const std::vector<T>& a, const std::vector<T>& b) {
  int64_t differ = std::max(std::ssize(a), std::ssize(b)) - std::min(std::ssize(a), std::ssize(b));
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) differ += a[i] != b[i] ? 1 : 0;
  return differ;
}

int64_t Differ(const Received& a, const Received& b) {
  return Differ(a.rows, b.rows) + Differ(a.rows_of_home, b.rows_of_home) +
         Differ(a.rows_of_expert, b.rows_of_expert) + Differ(a.first_of_expert, b.first_of_expert) +
         Differ(a.row_of_entry, b.row_of_entry) + Differ(a.weight_of_entry, b.weight_of_entry);
}

}  // namespace

Status MeasureOnGpus(const ExpertPlan& plan, const ExpertImages& images, const cuda::Driver& driver,
                     const GpuMeasureOptions& options,
                     const std::function<Status(const GpuMeasured&)>& show) {
  const DataType type = options.team.experts.types.at(0);
  const int64_t elements = plan.sizes.row_bytes / SizeOf(type);
  XCCL_ASSIGN_OR_RETURN(std::vector<std::shared_ptr<const cuda::Gpu>> gpus,
                        PlaceRanks(driver, plan.sizes.ranks, options.ranks_per_gpu));
  XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<GpuTeam> team,
                        GpuTeam::Create(plan, images, std::move(gpus), options.team));
  const std::chrono::nanoseconds limit = options.team.experts.time_limit;
  XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<ExpertTeam> beside, ExpertTeam::Create(plan, limit));
  Random random(options.seed);
  for (int32_t call = 0; call < options.calls; ++call) {
    const Routing routing = DrawCall(plan, options, random);
    std::vector<Rows> rows, outputs;
    for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank)
      rows.push_back(DrawBytes(routing.TokensOf(rank) * plan.sizes.row_bytes, random));
    GpuMeasured measured{.logical_bytes =
                             std::ssize(NeedsOf(routing, plan.sizes).ranks) * plan.sizes.row_bytes};
    XCCL_ASSIGN_OR_RETURN(const std::vector<Received> received, team->Dispatch(routing, rows));
    measured.time_us = team->last_call_us();
    XCCL_ASSIGN_OR_RETURN(const std::vector<Received> expected, beside->Dispatch(routing, rows));
    for (size_t rank = 0; rank < expected.size(); ++rank) {
      measured.wrong += Differ(received[rank], expected[rank]);
      outputs.push_back(DrawOutputs(std::ssize(expected[rank].row_of_entry) * elements, type, random));
    }
    XCCL_RETURN_IF_ERROR(show(measured));
    if (measured.wrong > 0) return OkStatus();  // the outputs would not fit
    XCCL_ASSIGN_OR_RETURN(const std::vector<Rows> sums, team->Combine(received, type, elements, outputs));
    measured.call = Call::kCombine;
    measured.time_us = team->last_call_us();
    XCCL_ASSIGN_OR_RETURN(const std::vector<Rows> right, beside->Combine(expected, type, elements, outputs));
    for (size_t rank = 0; rank < right.size(); ++rank) measured.wrong += Differ(sums[rank], right[rank]);
    XCCL_RETURN_IF_ERROR(show(measured));
  }
  return OkStatus();
}

}  // namespace xccl::dispatch
