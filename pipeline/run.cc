#include "pipeline/run.h"

#include <fmt/core.h>

#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "codegen/emit.h"
#include "ir/simulate/simulate_program.h"
#include "ir/time_model.h"
#include "ir/verify/read_plan.h"
#include "runtime/bootstrap.h"
#include "runtime/cpu/run_program.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/kernel_source.h"

namespace xccl {
namespace {

StatusOr<cuda::RunReport> RunOnGpus(const std::string& name, const Plan& plan, const KernelOrigin& origin,
                                    const RunOptions& options, const GpuRun& run) {
  cuda::GpuRunOptions gpu = run.options;
  const Program& program = plan.program->program;
  const std::string directory =
      run.kernel_cache.empty() ? cuda::DefaultKernelCache(ProcessEnvironment) : run.kernel_cache;
  const auto cache = std::make_shared<cuda::KernelCache>(directory);
  gpu.program.interpreter = cuda::ImagesOfInterpreter(program, cache);
  std::string text = origin.source;
  if (run.interpreter) {
    gpu.program.no_kernel = "--interpreter";
    text.clear();
  } else if (origin.from_book) {
    gpu.program.no_kernel = "the plan book has no kernel for it; hint: xccl-synth emit BOOK --to cuda";
  } else {
    EmitOptions emit;
    emit.title = name;
    StatusOr<std::string> emitted = Emit(program, plan.program->collective, emit);
    if (emitted.ok()) {
      text = *std::move(emitted);
    } else {
      gpu.program.no_kernel = emitted.status().message();
    }
  }
  const cuda::KernelImages images =
      text.empty() ? cuda::KernelImages() : cuda::ImagesOfSource(name, std::move(text), cache, origin.cubins);
  return cuda::RunProgram(name, program, plan.program->collective, images, cuda::LoadDriver, options, gpu);
}

// The machine model that `tune` measured when it made the book; absent in other books.
StatusOr<std::optional<MachineModel>> MachineOf(const PlanBook& book) {
  const std::string path = book.directory + "/machine.json";
  if (!PathExists(path)) return std::optional<MachineModel>();
  XCCL_ASSIGN_OR_RETURN(const MachineModel machine, ReadMachineModel(path));
  return std::optional(machine);
}

// Runs one collective of a book at each size.
StatusOr<RunResult> RunCollective(const PlanBook& book, PlanQuery query, const std::vector<int64_t>& sizes,
                                  const RunSettings& settings, const std::optional<MachineModel>& machine) {
  RunResult all;
  for (const int64_t size : sizes) {
    query.size_bytes = size;
    XCCL_ASSIGN_OR_RETURN(const size_t chosen, SelectPlan(book, query));
    const PlanBookEntry& entry = book.entries[chosen];
    XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadRunnablePlan(book.PathOf(entry)));
    KernelOrigin origin{.from_book = true};
    if (settings.gpus && !entry.kernel.empty()) {
      XCCL_ASSIGN_OR_RETURN(origin.source, ReadFile(book.KernelPathOf(entry)));
      origin.cubins = book.CubinPathsOf(entry);
    }
    XCCL_ASSIGN_OR_RETURN(RunResult one,
                          RunPlan(book.PathOf(entry), plan, origin, {size}, settings, machine));
    all.ran = std::move(one.ran);
    all.usage = one.usage;
    all.rows.insert(all.rows.end(), one.rows.begin(), one.rows.end());
    all.notices.insert(all.notices.end(), one.notices.begin(), one.notices.end());
  }
  return all;
}

}  // namespace

StatusOr<Plan> ReadRunnablePlan(const std::string& file) {
  XCCL_ASSIGN_OR_RETURN(Plan plan, ReadPlan(file));
  if (!plan.program)
    return InvalidInput(file + ": no program in the plan; hint: xccl-synth plan ... -o FILE writes one");
  return plan;
}

StatusOr<RunResult> RunPlan(const std::string& name, const Plan& plan, const KernelOrigin& origin,
                            const std::vector<int64_t>& sizes, const RunSettings& settings,
                            const std::optional<MachineModel>& machine) {
  const auto& [collective, program] = *plan.program;
  RunOptions options = settings.options;
  options.sizes_bytes = sizes;
  options.predicted_ps = [&](int64_t size) -> std::optional<int64_t> {
    const StatusOr<Simulation> simulation = SimulateProgram(
        plan.program->program, plan.program->collective, plan.topology,
        {.size_bytes = size, .model = plan.made_by.model, .machine = machine ? &*machine : nullptr});
    if (!simulation.ok()) return std::nullopt;
    return simulation->time_ps;
  };
  RunResult result;
  result.ran = {.title = plan.collective.name(),
                .ranks = fmt::format("{} ranks as {}", plan.collective.num_members(),
                                     options.processes ? "processes" : "threads"),
                .type = options.type,
                .op = plan.collective.Reduces() ? std::optional(options.op) : std::nullopt,
                .root = plan.collective.spec().root,
                .iterations = options.iterations,
                .warmup = options.warmup};
  if (!settings.gpus) {
    XCCL_ASSIGN_OR_RETURN(result.rows, RunProgram(program, collective, options));
    return result;
  }
  XCCL_ASSIGN_OR_RETURN(cuda::RunReport report, RunOnGpus(name, plan, origin, options, *settings.gpus));
  result.rows = std::move(report.rows);
  result.usage = report.usage;
  result.ran.ranks += " on " + report.devices;
  if (!report.notice.empty()) result.notices.push_back(std::move(report.notice));
  return result;
}

StatusOr<std::vector<RunResult>> RunBook(const std::string& directory, std::vector<int64_t> sizes,
                                         const RunSettings& settings) {
  XCCL_ASSIGN_OR_RETURN(const PlanBook book, ReadPlanBook(directory));
  XCCL_ASSIGN_OR_RETURN(const std::optional<MachineModel> machine, MachineOf(book));
  if (sizes.empty()) sizes = {64LL << 20};
  std::vector<RunResult> results;
  std::set<std::tuple<CollectiveKind, int32_t, std::optional<Rank>>> asked;
  for (const PlanBookEntry& entry : book.entries) {
    if (!asked.emplace(entry.collective, entry.ranks, entry.root).second) continue;
    const PlanQuery query{.collective = entry.collective,
                          .ranks = entry.ranks,
                          .root = entry.root,
                          .type = settings.options.type};
    XCCL_ASSIGN_OR_RETURN(RunResult result, RunCollective(book, query, sizes, settings, machine));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace xccl
