// run: executes a plan and checks every element.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/files.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/output_json.h"
#include "cli/run_cuda.h"
#include "ir/machine_model.h"
#include "ir/plan.h"
#include "ir/simulate/simulate_program.h"
#include "ir/time_model.h"
#include "ir/verify/read_plan.h"
#include "runtime/cpu/run_program.h"
#include "runtime/plan_book.h"
#include "runtime/run_row.h"
#include "runtime/run_table.h"

namespace xccl {
namespace {

struct Flags {
  std::string file;
  std::string backend = "cpu";
  bool processes = false;
  std::string sizes;
  std::string type = "float";
  std::string op = "sum";
  int32_t iterations = 20;
  int32_t warmup = 1;
  std::string timeout = "30s";
  CudaFlags cuda;
};

Row ToRow(const RunRow& row, const std::optional<cuda::DeviceUsage>& usage) {
  Row cells = {{"size_bytes", row.size_bytes},
               {"in_place", row.in_place},
               {"time_us", row.time_us},
               {"algbw_gb_per_s", row.algbw_gb_per_s},
               {"busbw_gb_per_s", row.busbw_gb_per_s},
               {"predicted_us", row.predicted_us ? Cell(*row.predicted_us) : Cell()},
               {"wrong", row.wrong}};
  if (usage) {
    cells.emplace_back("ctas", int64_t{usage->ctas});
    cells.emplace_back("threads", int64_t{usage->threads});
  }
  return cells;
}

StatusOr<RunOptions> MakeRunOptions(const Flags& flags) {
  RunOptions options;
  const StatusOr<DataType> type = ParseDataType(flags.type);
  if (!type.ok()) return FlagError(type.status(), "--dtype");
  const StatusOr<ReduceOp> op = ParseReduceOp(flags.op);
  if (!op.ok()) return FlagError(op.status(), "--redop");
  const StatusOr<int64_t> timeout = ParseDuration(flags.timeout);
  if (!timeout.ok()) return FlagError(timeout.status(), "--timeout");
  if (*timeout == 0) return UsageError("--timeout: 0s; expected more than 0");
  options.type = *type;
  options.op = *op;
  options.iterations = flags.iterations;
  options.warmup = flags.warmup;
  options.processes = flags.processes;
  options.time_limit = std::chrono::nanoseconds(std::max<int64_t>(1, *timeout / kPsPerNs));
  return options;
}

// One table: what ran, and its rows.
struct Table {
  RunTableOptions options;
  std::vector<RunRow> rows;
  std::optional<cuda::DeviceUsage> usage;
};

Status RunOnGpus(const std::string& file, const Plan& plan, const KernelOrigin& origin, const Flags& flags,
                 const RunOptions& options, Table& table) {
  XCCL_ASSIGN_OR_RETURN(cuda::RunReport report, RunOnCuda(file, plan, origin, flags.cuda, options));
  if (!report.notice.empty()) std::fprintf(stderr, "note: %s\n", report.notice.c_str());
  table.rows = std::move(report.rows);
  table.usage = report.usage;
  table.options.ranks += " on " + report.devices;
  table.options.details = DescribeUsage(report.usage);
  return OkStatus();
}

StatusOr<Table> RunOnePlan(const std::string& file, const Plan& plan, const KernelOrigin& origin,
                           const Flags& flags, const std::vector<int64_t>& sizes,
                           const std::optional<MachineModel>& machine = {}) {
  XCCL_ASSIGN_OR_RETURN(RunOptions options, MakeRunOptions(flags));
  options.sizes_bytes = sizes;
  const StatusOr<TimeModel> model = ParseTimeModel(plan.made_by.model);
  options.predicted_ps = [&](int64_t size) -> std::optional<int64_t> {
    const StatusOr<Simulation> simulation =
        SimulateProgram(plan.program->program, plan.program->collective, plan.topology,
                        {.size_bytes = size,
                         .model = model.ok() ? *model : TimeModel::kPipelined,
                         .machine = machine ? &*machine : nullptr});
    if (!simulation.ok()) return std::nullopt;
    return simulation->time_ps;
  };
  Table table;
  table.options = {.title = plan.collective.name(),
                   .ranks = fmt::format("{} ranks as {}", plan.collective.num_members(),
                                        flags.processes ? "processes" : "threads"),
                   .type = options.type,
                   .op = plan.collective.Reduces() ? std::optional(options.op) : std::nullopt,
                   .root = plan.collective.spec().root,
                   .iterations = options.iterations,
                   .warmup = options.warmup};
  if (flags.backend == "cuda") {
    XCCL_RETURN_IF_ERROR(RunOnGpus(file, plan, origin, flags, options, table));
    return table;
  }
  XCCL_ASSIGN_OR_RETURN(table.rows, RunProgram(plan.program->program, plan.program->collective, options));
  return table;
}

StatusOr<Plan> ReadRunnablePlan(const std::string& file) {
  XCCL_ASSIGN_OR_RETURN(Plan plan, ReadPlan(file));
  if (!plan.program)
    return InvalidInput(file + ": no program in the plan; hint: xccl-synth plan ... -o FILE writes one");
  return plan;
}

// What `tune` measured when it made the book; none in other books.
StatusOr<std::optional<MachineModel>> MachineOf(const PlanBook& book) {
  const std::string path = book.directory + "/machine.json";
  if (!std::filesystem::exists(path)) return std::optional<MachineModel>();
  XCCL_ASSIGN_OR_RETURN(const MachineModel machine, ReadMachineModel(path));
  return std::optional(machine);
}

// Every collective of a book, at every size the plan that the book has for it.
StatusOr<std::vector<Table>> RunBook(const Flags& flags, std::vector<int64_t> sizes) {
  XCCL_ASSIGN_OR_RETURN(const PlanBook book, ReadPlanBook(flags.file));
  const StatusOr<DataType> type = ParseDataType(flags.type);
  if (!type.ok()) return FlagError(type.status(), "--dtype");
  XCCL_ASSIGN_OR_RETURN(const std::optional<MachineModel> machine, MachineOf(book));
  std::vector<Table> tables;
  std::vector<PlanQuery> asked;
  for (const PlanBookEntry& entry : book.entries) {
    PlanQuery query{.collective = entry.collective, .ranks = entry.ranks, .root = entry.root, .type = *type};
    const auto same = [&](const PlanQuery& q) {
      return q.collective == query.collective && q.ranks == query.ranks && q.root == query.root;
    };
    if (std::any_of(asked.begin(), asked.end(), same)) continue;
    asked.push_back(query);
    Table whole;
    if (sizes.empty()) sizes = {64LL << 20};
    for (int64_t size : sizes) {
      query.size_bytes = size;
      XCCL_ASSIGN_OR_RETURN(const size_t chosen, SelectPlan(book, query));
      XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadRunnablePlan(book.PathOf(book.entries[chosen])));
      KernelOrigin origin{.from_book = true};
      if (flags.backend == "cuda" && !book.entries[chosen].kernel.empty()) {
        XCCL_ASSIGN_OR_RETURN(origin.source, ReadFile(book.KernelPathOf(book.entries[chosen])));
        origin.cubins = book.CubinPathsOf(book.entries[chosen]);
      }
      XCCL_ASSIGN_OR_RETURN(
          Table table, RunOnePlan(book.PathOf(book.entries[chosen]), plan, origin, flags, {size}, machine));
      whole.options = table.options;
      whole.usage = table.usage;
      whole.rows.insert(whole.rows.end(), table.rows.begin(), table.rows.end());
    }
    tables.push_back(std::move(whole));
  }
  return tables;
}

Status RunFile(const Flags& flags, bool json) {
  XCCL_RETURN_IF_ERROR(MakeRunOptions(flags).status());
  XCCL_RETURN_IF_ERROR(GpuOptionsOf(flags.cuda).status());
  std::vector<int64_t> sizes;
  if (!flags.sizes.empty()) {
    XCCL_ASSIGN_OR_RETURN(sizes, ParseSizesFlag("--sizes", flags.sizes));
  }
  std::vector<Table> tables;
  if (IsPlanBook(flags.file)) {
    XCCL_ASSIGN_OR_RETURN(tables, RunBook(flags, sizes));
  } else if (std::filesystem::is_directory(flags.file)) {
    return InvalidInput(flags.file +
                        ": a directory without index.json; expected a plan file or a plan book; hint: "
                        "xccl-synth tune TOPOLOGY -o BOOK makes one");
  } else {
    XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadRunnablePlan(flags.file));
    if (sizes.empty()) sizes = {plan.made_by.size_bytes};
    XCCL_ASSIGN_OR_RETURN(Table table, RunOnePlan(flags.file, plan, {}, flags, sizes));
    tables.push_back(std::move(table));
  }
  std::vector<Row> cells;
  bool right = true;
  for (const Table& table : tables) {
    right = right && AllRight(table.rows);
    for (const RunRow& row : table.rows) cells.push_back(ToRow(row, table.usage));
    if (!json) std::fputs(FormatRunTable(table.rows, table.options).c_str(), stdout);
  }
  if (json) std::fputs(ToJson(cells).c_str(), stdout);
  return right ? OkStatus() : BugError(flags.file + ": elements are wrong; the table says how many");
}

}  // namespace

void AddRunCommand(CommandLine& line, Session& session) {
  Command command = line.AddCommand("run", "Run a plan and check every element; prints nccl-tests' table");
  auto flags = std::make_shared<Flags>();
  command
      .AddOption("PLAN", flags->file,
                 "a plan file with a program, or a plan book (a directory with an index.json)")
      .Required();
  command.AddOption("--backend", flags->backend, "where it runs: cpu, cuda")
      .OneOf({"cpu", "cuda"})
      .ShowDefault();
  command.AddFlag("--processes", flags->processes, "a process for every rank instead of a thread");
  command.AddOption("--sizes", flags->sizes, "1KiB,1MiB or 1KiB:1GiB:x4 (default: the plan's size)");
  command
      .AddOption("--dtype", flags->type,
                 "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2")
      .ShowDefault();
  command.AddOption("--redop", flags->op, "sum prod min max avg").ShowDefault();
  command.AddOption("--iters", flags->iterations, "timed iterations").Between(1, 1 << 20).ShowDefault();
  command.AddOption("--warmup", flags->warmup, "iterations before").Between(0, 1 << 20).ShowDefault();
  command.AddOption("--timeout", flags->timeout, "give up when no rank makes progress for this long")
      .ShowDefault();
  AddCudaFlags(command, flags->cuda);
  command.AddFlag("--json", session.json, "print the rows as JSON");
  command.Footer(
      "Examples:\n"
      "  xccl-synth run allreduce.plan.json --sizes 1KiB:64MiB:x4\n"
      "  xccl-synth run allreduce.plan.json --processes --dtype bfloat16 --redop max\n"
      "  xccl-synth run allreduce.plan.json --backend cuda --ranks-per-gpu 8");
  command.WhenChosen(
      [&session, flags] { session.work = [&session, flags] { return RunFile(*flags, session.json); }; });
}

}  // namespace xccl
