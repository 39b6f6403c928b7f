// run --backend cuda, for plans of expert dispatch.
#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/version.h"
#include "cli/experts.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "dispatch/verify.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/experts/cuda/gpu_experts.h"
#include "runtime/experts/cuda/images.h"
#include "runtime/experts/cuda/measure_gpus.h"
#include "runtime/experts/measure.h"

namespace xccl {
Status RunExpertsOnGpus(const std::string& path, const ExpertRunFlags& flags, const RunSettings& settings,
                        DataType type, const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const dispatch::ExpertPlan plan, dispatch::ReadExpertPlan(path));
  const GpuRun& gpus = *settings.gpus;
  dispatch::GpuMeasureOptions options;
  options.calls = settings.options.iterations;
  options.ranks_per_gpu = gpus.options.ranks_per_gpu;
  options.team.graph = gpus.options.graph;
  options.team.experts = {.types = {type},
                          .back_bytes = plan.sizes.row_bytes,
                          .max_ctas = gpus.options.program.max_ctas,
                          .memory_limit = gpus.options.program.arena.memory_limit,
                          .time_limit = settings.options.time_limit,
                          .host_of = {}};
  XCCL_RETURN_IF_ERROR(dispatch::GpuExperts::Check(path, plan, options.team.experts));
  options.tokens = flags.tokens.value_or(dispatch::TokensThatFit(plan.sizes));
  if (options.tokens < 1 || options.tokens > plan.sizes.max_tokens)
    return UsageError(
        fmt::format("--tokens: {}; expected 1 to {}, the plan's", options.tokens, plan.sizes.max_tokens));
  const std::string routing = flags.routing.value_or("uniform");
  XCCL_ASSIGN_OR_RETURN(options.routing, dispatch::ReadRoutingSource(routing, plan.sizes));
  XCCL_ASSIGN_OR_RETURN(const cuda::Driver* driver, cuda::LoadDriver());
  std::vector<std::vector<std::string>> table = {{"call", "time us", "logical GB/s", "wrong"}};
  std::vector<Row> rows;
  int64_t wrong = 0;
  const auto add = [&](const dispatch::GpuMeasured& measured) {
    const double rate =
        static_cast<double>(measured.logical_bytes) / plan.sizes.ranks / measured.time_us / 1e3;
    const std::string call(dispatch::ToString(measured.call));
    wrong += measured.wrong;
    table.push_back({call, fmt::format("{:.1f}", measured.time_us), fmt::format("{:.3f}", rate),
                     fmt::format("{}", measured.wrong)});
    rows.push_back({{"call", call},
                    {"time_us", measured.time_us},
                    {"logical_gb_per_s", rate},
                    {"wrong", measured.wrong},
                    {"ranks", int64_t{plan.sizes.ranks}},
                    {"tokens", int64_t{options.tokens}},
                    {"routing", routing},
                    {"dtype", std::string(ToString(type))},
                    {"version", std::string(kVersion)}});
    return OkStatus();
  };
  const std::string cache =
      gpus.kernel_cache.empty() ? cuda::DefaultKernelCache(ProcessEnvironment) : gpus.kernel_cache;
  XCCL_RETURN_IF_ERROR(dispatch::MeasureOnGpus(
      plan, dispatch::ImagesOfExperts(std::make_shared<cuda::KernelCache>(cache)), *driver, options, add));
  if (session.json)
    XCCL_RETURN_IF_ERROR(Print(ToJson(rows)));
  else
    XCCL_RETURN_IF_ERROR(
        Print(fmt::format("{} on {}: {} on GPUs beside threads, {} tokens a rank, {}, sums in {}\n{}",
                          plan.route, plan.topology.name(), Counted(plan.sizes.ranks, "rank"), options.tokens,
                          routing, ToString(type), TableText(table))));
  return wrong == 0 ? OkStatus() : BugError(path + ": elements are wrong; the table says how many");
}

}  // namespace xccl
