// 1. Read the plan or the plan book.
// 2. If a launcher started the ranks as processes, check that all have the same plan and the same flags.
// 3. For each size, predict the time, and run the program on CPU ranks (runtime/cpu) or on GPUs
//    (runtime/cuda). On GPUs, take the kernel from the book, emit it, or use the interpreter kernel.
// 4. Show the row of the size.
// A book runs one collective after another. For each size it selects the plan before step 3.
#include "pipeline/run.h"

#include <fmt/ranges.h>

#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "base/size_range.h"
#include "base/strings.h"
#include "codegen/emit.h"
#include "ir/known_machines.h"
#include "ir/verify/read_plan.h"
#include "pipeline/predict.h"
#include "pipeline/runnable_plan.h"
#include "runtime/bootstrap/placement.h"
#include "runtime/cpu/run_program.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu_hosts.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/kernel_source.h"
#include "runtime/rails.h"

namespace xccl {
namespace {

StatusOr<const cuda::Driver*> LoadDriver() {
  StatusOr<const cuda::Driver*> driver = cuda::LoadDriver();
  if (driver.ok()) return driver;
  return Status(driver.status().code(), driver.status().message() + "; hint: --backend=cpu");
}

StatusOr<cuda::RunReport> RunOnGpus(const std::string& name, const Plan& plan, const KernelOrigin& origin,
                                    const RunOptions& options, const RunSettings& settings) {
  const GpuRun& run = *settings.gpus;
  cuda::GpuRunOptions gpu = run.options;
  const Program& program = plan.program->program;
  if (LaunchedGroup* const group = settings.group) {
    gpu.launched = {group->bootstrap().rank(), group->bootstrap().job(),
                    OtherHostsOf(*group, 3 * options.time_limit)};
    gpu.program.rails = RailsOf(program, plan.topology);
  }
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
  return cuda::RunProgram(name, program, plan.program->collective, images, LoadDriver, options, gpu);
}

// Returns the machine model that `tune` measured when it made the book; absent if the book has no model.
StatusOr<std::optional<MachineModel>> MachineOf(const PlanBook& book) {
  const std::string path = book.directory + "/machine.json";
  if (!PathExists(path)) return std::optional<MachineModel>();
  XCCL_ASSIGN_OR_RETURN(const MachineModel machine, ReadMachineModel(path));
  return std::optional(machine);
}

std::string DescribeRanks(const Plan& plan, const RunSettings& settings) {
  const bool processes = settings.options.processes || settings.group != nullptr;
  std::string text =
      fmt::format("{} ranks as {}", plan.collective.num_members(), processes ? "processes" : "threads");
  if (settings.group == nullptr) return text;
  const size_t hosts = settings.group->bootstrap().host_names().size();
  return hosts == 1 ? text + " of one host" : text + fmt::format(" of {} hosts", hosts);
}

// Checks that all processes of a group have the same plan, and that the plan has one rank for each process.
Status CheckGroup(const std::string& name, const Plan& plan, const RunSettings& settings) {
  if (settings.group == nullptr) return OkStatus();
  const int32_t ranks = plan.program->program.ranks.size();
  if (settings.group->bootstrap().ranks() != ranks)
    return InvalidInput(fmt::format("{}: a plan for {} ranks; {} processes were started; hint: mpirun -n {}",
                                    name, ranks, settings.group->bootstrap().ranks(), ranks));
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadFile(name));
  return settings.group->Agree("plan", fmt::format("{:016x}", HashOf(text)));
}

// Checks that all processes of a group were started with the same sizes and flags.
Status CheckFlags(const RunSettings& settings, const std::vector<int64_t>& sizes) {
  if (settings.group == nullptr) return OkStatus();
  const RunOptions& options = settings.options;
  std::string text = fmt::format("{} {} {} {} {}", ToString(options.type), ToString(options.op),
                                 options.iterations, options.warmup.value_or(-1), fmt::join(sizes, ","));
  if (settings.gpus) {
    const cuda::GpuRunOptions& gpu = settings.gpus->options;
    text += fmt::format(" {} {} {} {}", gpu.registered, gpu.graph, gpu.program.direct, gpu.program.multicast);
  }
  return settings.group->Agree("--sizes, --dtype, --redop, --iters, --warmup, --backend or flag of GPUs",
                               text);
}

// Runs the plan that the book selects for one size of a collective.
StatusOr<RunResult> RunQuery(const PlanBook& book, const PlanQuery& query, const RunSettings& settings,
                             const std::optional<MachineModel>& machine) {
  XCCL_ASSIGN_OR_RETURN(const size_t chosen, SelectPlan(book, query));
  const PlanBookEntry& entry = book.entries[chosen];
  XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadRunnablePlan(book.PathOf(entry)));
  XCCL_RETURN_IF_ERROR(CheckGroup(book.PathOf(entry), plan, settings));
  KernelOrigin origin{.from_book = true};
  if (settings.gpus && !entry.kernel.empty()) {
    XCCL_ASSIGN_OR_RETURN(origin.source, ReadKernel(book, entry));
    origin.cubins = book.CubinPathsOf(entry);
  }
  return RunPlan(book.PathOf(entry), plan, origin, {query.size_bytes}, settings, machine);
}

// Returns the machine model for predictions: the measured one, or else the known one that the plan names.
std::optional<MachineModel> MachineFor(const Plan& plan, const std::optional<MachineModel>& measured) {
  return measured ? measured : KnownMachine(plan.made_by.machine);
}

// Says whose times are predicted: the program's on a machine model, or the schedule's on ideal links.
std::string DescribePredicted(const Plan& plan, const std::optional<MachineModel>& measured) {
  if (measured) return "simulated with what tune measured";
  const std::optional<MachineModel> machine = MachineFor(plan, measured);
  if (LevelOf(plan, machine ? &*machine : nullptr) == PlanLevel::kProgram)
    return fmt::format("the program on {}, which is not this host: {}", plan.topology.name(),
                       machine->source);
  return fmt::format("ideal links of {}, which is not this host: bandwidths and latencies alone",
                     plan.topology.name());
}

// Returns the header of a plan's table before the plan runs. On GPUs, RunPlan adds the names of the devices.
RunTableOptions HeadOf(const Plan& plan, const RunSettings& settings,
                       const std::optional<MachineModel>& measured) {
  const RunOptions& options = settings.options;
  return {.title = plan.collective.name(),
          .ranks = DescribeRanks(plan, settings),
          .type = options.type,
          .op = plan.collective.Reduces() ? std::optional(options.op) : std::nullopt,
          .root = plan.collective.spec().root,
          .iterations = options.iterations,
          .warmup = options.warmup,
          .predicted = DescribePredicted(plan, measured)};
}

// Adds a notice for each size that is rounded down to 0 bytes. Its row shows 0 bytes, as in nccl-tests.
void NoticeEmptySizes(const Collective& collective, const RunOptions& options,
                      std::vector<std::string>& notices) {
  if (collective.kind() == CollectiveKind::kBarrier) return;
  for (const int64_t size : options.sizes_bytes)
    if (size > 0 && CollectiveSizes(collective, size, SizeOf(options.type)).size_bytes() == 0)
      notices.push_back(fmt::format("{} bytes: {} of {} ranks in {} rounds them down to 0 bytes", size,
                                    collective.name(), collective.num_members(), ToString(options.type)));
}

// Adds a notice for each size that is outside the plan's range of sizes. The plan still runs at this size.
void NoticeOtherSizes(const PlanSizes& of, const std::vector<int64_t>& sizes,
                      std::vector<std::string>& notices) {
  for (const int64_t size : sizes)
    if (size < of.min_bytes || (of.max_bytes > 0 && size > of.max_bytes))
      notices.push_back(fmt::format("{} is none of the sizes that the plan is for: {}", SizeText(size),
                                    SizeRangeText(of.min_bytes, of.max_bytes)));
}

// Runs one size after another and shows each row. Without `head`, the first run gives the table's header.
Status RunTableOf(const std::vector<int64_t>& sizes, const std::optional<RunTableOptions>& head,
                  const std::function<StatusOr<RunResult>(int64_t size)>& run, const Deadline& deadline,
                  const RunShow& show, std::string_view what = "anything") {
  if (head) XCCL_RETURN_IF_ERROR(show.begin({.ran = *head, .rows = {}, .usage = {}, .notices = {}}));
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (deadline.IsOver() && i == 0)
      return LimitReached(fmt::format("{} before {} ran", deadline.Passed(), what));
    if (deadline.IsOver())
      return show.end(
          fmt::format("{}; {} and what follows did not run", deadline.Passed(), SizeText(sizes[i])));
    XCCL_ASSIGN_OR_RETURN(const RunResult result, run(sizes[i]));
    if (i == 0 && !head) XCCL_RETURN_IF_ERROR(show.begin(result));
    XCCL_RETURN_IF_ERROR(show.size(result));
  }
  return show.end("");
}

// Checks that the book has a plan of the collective, if one is asked for.
Status CheckHas(const PlanBook& book, std::optional<CollectiveKind> only) {
  std::set<std::string> names;
  for (const PlanBookEntry& entry : book.entries) {
    if (!only || entry.collective == *only) return OkStatus();
    names.emplace(ToString(entry.collective));
  }
  if (!only || names.empty()) return OkStatus();
  return InvalidInput(fmt::format("{}: no plan of {}; expected {}", book.directory, ToString(*only),
                                  Either(std::vector(names.begin(), names.end()))));
}

// Returns the sizes that the book's plans for one call were made for, ascending.
StatusOr<std::vector<int64_t>> SizesOfPlans(const PlanBook& book, const PlanBookEntry& call) {
  std::set<int64_t> sizes;
  for (const PlanBookEntry& entry : book.entries) {
    if (entry.collective != call.collective || entry.ranks != call.ranks || entry.root != call.root) continue;
    // The plan is verified later, when it runs.
    XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadPlanUnverified(book.PathOf(entry)));
    sizes.insert(plan.made_by.size_bytes);
  }
  return std::vector<int64_t>(sizes.begin(), sizes.end());
}

}  // namespace

StatusOr<RunResult> RunPlan(const std::string& name, const Plan& plan, const KernelOrigin& origin,
                            const std::vector<int64_t>& sizes, const RunSettings& settings,
                            const std::optional<MachineModel>& measured) {
  const auto& [collective, program] = *plan.program;
  const std::optional<MachineModel> model = MachineFor(plan, measured);
  const MachineModel* const machine = model ? &*model : nullptr;
  RunOptions options = settings.options;
  options.sizes_bytes = sizes;
  options.predicted_ps = [&](int64_t size) -> std::optional<int64_t> {
    const StatusOr<Simulation> simulation =
        SimulatePlan(plan, size, plan.made_by.model, LevelOf(plan, machine), machine);
    if (!simulation.ok()) return std::nullopt;
    return simulation->time_ps;
  };
  RunResult result;
  result.ran = HeadOf(plan, settings, measured);
  NoticeEmptySizes(collective, options, result.notices);
  NoticeOtherSizes(plan.sizes, sizes, result.notices);
  if (!settings.gpus) {
    const CpuRunOptions cpu{.group = settings.group, .topology = &plan.topology};
    XCCL_ASSIGN_OR_RETURN(result.rows, RunProgram(program, collective, options, cpu));
    return result;
  }
  XCCL_ASSIGN_OR_RETURN(cuda::RunReport report, RunOnGpus(name, plan, origin, options, settings));
  result.rows = std::move(report.rows);
  result.usage = report.usage;
  result.ran.ranks += " on " + report.devices;
  if (!report.notice.empty()) result.notices.push_back(std::move(report.notice));
  return result;
}

Status RunSizes(const std::string& file, const std::vector<int64_t>& asked_sizes, const RunSettings& settings,
                const RunShow& show) {
  // A process on a GPU compiles one kernel for all ranks, so it needs the instructions of all ranks.
  const bool own_alone = settings.group != nullptr && !settings.gpus;
  XCCL_ASSIGN_OR_RETURN(
      const Plan plan,
      ReadRunnablePlan(file, own_alone ? std::optional(settings.group->bootstrap().rank()) : std::nullopt));
  const std::vector<int64_t> sizes = asked_sizes.empty() ? std::vector{plan.made_by.size_bytes} : asked_sizes;
  const auto head = settings.gpus ? std::nullopt : std::optional(HeadOf(plan, settings, {}));
  XCCL_RETURN_IF_ERROR(CheckGroup(file, plan, settings));
  XCCL_RETURN_IF_ERROR(CheckFlags(settings, sizes));
  const auto run = [&](int64_t size) { return RunPlan(file, plan, {}, {size}, settings, {}); };
  return RunTableOf(sizes, head, run, settings.deadline, show);
}

Status RunBook(const std::string& directory, const std::vector<int64_t>& asked_sizes,
               const RunSettings& settings, const RunShow& show) {
  XCCL_ASSIGN_OR_RETURN(const PlanBook book, ReadPlanBook(directory));
  XCCL_ASSIGN_OR_RETURN(const std::optional<MachineModel> machine, MachineOf(book));
  XCCL_RETURN_IF_ERROR(CheckFlags(settings, asked_sizes));
  std::set<std::tuple<CollectiveKind, int32_t, std::optional<Rank>>> done;
  XCCL_RETURN_IF_ERROR(CheckHas(book, settings.only));
  for (const PlanBookEntry& entry : book.entries) {
    if (settings.only && entry.collective != *settings.only) continue;
    if (!done.emplace(entry.collective, entry.ranks, entry.root).second) continue;
    std::vector<int64_t> sizes = asked_sizes;
    if (sizes.empty()) {
      XCCL_ASSIGN_OR_RETURN(sizes, SizesOfPlans(book, entry));
    }
    PlanQuery query{.collective = entry.collective,
                    .ranks = entry.ranks,
                    .root = entry.root,
                    .type = settings.options.type};
    const auto run = [&](int64_t size) {
      query.size_bytes = size;
      return RunQuery(book, query, settings, machine);
    };
    XCCL_RETURN_IF_ERROR(RunTableOf(sizes, std::nullopt, run, settings.deadline, show,
                                    done.size() == 1 ? "anything" : ToString(entry.collective)));
  }
  return OkStatus();
}

}  // namespace xccl
