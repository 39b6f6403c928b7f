// run: executes a plan and checks every element.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/files.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "pipeline/run.h"
#include "runtime/plan_book.h"
#include "runtime/run_row.h"
#include "runtime/run_table.h"

namespace xccl {
namespace {

struct Flags {
  std::string file, backend = "cpu", sizes, type = "float", op = "sum", timeout = "30s";
  RunOptions options = {.warmup = 1};
  CudaFlags cuda;
};

Row ToRow(const RunRow& row, const std::optional<cuda::DeviceUsage>& usage) {
  Row cells = {{"size_bytes", row.size_bytes},
               {"in_place", row.in_place},
               {"time_us", row.time_us},
               {"algbw_gb_per_s", row.algbw_gb_per_s},
               {"busbw_gb_per_s", row.busbw_gb_per_s},
               {"predicted_us", OrNull(row.predicted_us)},
               {"wrong", row.wrong}};
  if (usage) {
    cells.emplace_back("ctas", int64_t{usage->ctas});
    cells.emplace_back("threads", int64_t{usage->threads});
  }
  return cells;
}

StatusOr<RunSettings> SettingsOf(const Flags& flags) {
  RunSettings settings{.options = flags.options, .gpus = {}};
  RunOptions& options = settings.options;
  XCCL_ASSIGN_OR_RETURN(options.type, FlagValue("--dtype", ParseDataType(flags.type)));
  XCCL_ASSIGN_OR_RETURN(options.op, FlagValue("--redop", ParseReduceOp(flags.op)));
  XCCL_ASSIGN_OR_RETURN(const int64_t timeout, FlagValue("--timeout", ParseDuration(flags.timeout)));
  if (timeout == 0) return UsageError("--timeout: 0s; expected more than 0");
  options.time_limit = std::chrono::nanoseconds(std::max<int64_t>(1, timeout / kPsPerNs));
  XCCL_ASSIGN_OR_RETURN(GpuRun gpus, GpuRunOf(flags.cuda));
  if (flags.backend == "cuda") settings.gpus = std::move(gpus);
  return settings;
}

Status RunFile(const Flags& flags, const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const RunSettings settings, SettingsOf(flags));
  XCCL_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, ParseSizesFlag(flags.sizes));
  std::vector<RunResult> results;
  if (IsPlanBook(flags.file)) {
    XCCL_ASSIGN_OR_RETURN(results, RunBook(flags.file, sizes, settings));
  } else if (IsDirectory(flags.file)) {
    return InvalidInput(flags.file +
                        ": a directory without index.json; expected a plan file or a plan book; hint: "
                        "xccl-synth tune TOPOLOGY -o BOOK makes one");
  } else {
    XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadRunnablePlan(flags.file));
    if (sizes.empty()) sizes = {plan.made_by.size_bytes};
    XCCL_ASSIGN_OR_RETURN(RunResult result, RunPlan(flags.file, plan, {}, sizes, settings, {}));
    results.push_back(std::move(result));
  }
  std::vector<Row> cells;
  bool right = true;
  for (RunResult& result : results) {
    for (const std::string& notice : result.notices) std::fprintf(stderr, "note: %s\n", notice.c_str());
    if (result.usage) result.ran.details = DescribeUsage(*result.usage);
    right = right && AllRight(result.rows);
    for (const RunRow& row : result.rows) cells.push_back(ToRow(row, result.usage));
    if (!session.json) XCCL_RETURN_IF_ERROR(Print(FormatRunTable(result.rows, result.ran)));
  }
  if (session.json) XCCL_RETURN_IF_ERROR(Print(ToJson(cells)));
  return right ? OkStatus() : BugError(flags.file + ": elements are wrong; the table says how many");
}

}  // namespace

void AddRunCommand(CommandLine& line, Session& session) {
  auto [command, flags] = AddCommand(line, session, "run",
                                     "Run a plan and check every element; prints nccl-tests' table", RunFile);
  command
      .AddOption("PLAN", flags.file,
                 "a plan file with a program, or a plan book (a directory with an index.json)")
      .Required();
  command.AddOption("--backend", flags.backend, "where it runs: cpu, cuda")
      .OneOf({"cpu", "cuda"})
      .ShowDefault();
  command.AddFlag("--processes", flags.options.processes, "a process for every rank instead of a thread");
  command.AddOption("--sizes", flags.sizes, "1KiB,1MiB or 1KiB:1GiB:x4 (default: the plan's size)");
  command
      .AddOption("--dtype", flags.type,
                 "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2")
      .ShowDefault();
  command.AddOption("--redop", flags.op, "sum prod min max avg").ShowDefault();
  command.AddOption("--iters", flags.options.iterations, "timed iterations")
      .Between(1, 1 << 20)
      .ShowDefault();
  command.AddOption("--warmup", flags.options.warmup, "iterations before").Between(0, 1 << 20).ShowDefault();
  command.AddOption("--timeout", flags.timeout, "give up when no rank makes progress for this long")
      .ShowDefault();
  AddCudaFlags(command, flags.cuda);
  command.AddFlag("--json", session.json, "print the rows as JSON");
  command.Footer(
      "Examples:\n"
      "  xccl-synth run allreduce.plan.json --sizes 1KiB:64MiB:x4\n"
      "  xccl-synth run allreduce.plan.json --processes --dtype bfloat16 --redop max\n"
      "  xccl-synth run allreduce.plan.json --backend cuda --ranks-per-gpu 8");
}

}  // namespace xccl
