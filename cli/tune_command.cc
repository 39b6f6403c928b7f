// tune: measures the machine, plans every collective at every size, runs the plans and keeps the fastest in a
// plan book.
#include <fmt/core.h>

#include <algorithm>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "pipeline/emit.h"
#include "pipeline/run.h"
#include "pipeline/tune.h"
#include "runtime/plan_book.h"
#include "runtime/run_row.h"
#include "runtime/run_table.h"

namespace xccl {
namespace {

struct Flags {
  TopologyFlags topology;
  std::string collectives = "allreduce,allgather,reduce_scatter";
  std::string sizes = "1KiB:64MiB:x16";
  std::string backend = "cpu";
  RunOptions run = {.iterations = 5, .warmup = 1, .in_place = false};
  PlanFlags plan;
  CudaFlags cuda;
  std::string output;
};

// Times a program on CPU ranks, or on GPUs.
StatusOr<Measure> MeasureOf(const Flags& flags, const Topology& topology) {
  RunSettings settings{.options = flags.run, .gpus = {}};
  if (flags.backend == "cuda") {
    XCCL_ASSIGN_OR_RETURN(settings.gpus, GpuRunOf(flags.cuda));
  }
  return Measure(
      [settings, &topology](const LoweredProgram& lowered, int64_t size_bytes) -> StatusOr<double> {
        const Plan plan{topology, lowered.collective, {}, lowered, {}};
        XCCL_ASSIGN_OR_RETURN(const RunResult result, RunPlan("tune", plan, {}, {size_bytes}, settings, {}));
        if (!AllRight(result.rows)) return BugError("tune: elements are wrong");
        return result.rows.front().time_us;
      });
}

StatusOr<std::vector<Collective>> Collectives(const std::string& names, const Topology& topology) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<CollectiveKind> kinds,
                        ListValue("--collectives", names, ParseCollectiveKind));
  std::vector<Collective> collectives;
  for (const CollectiveKind kind : kinds) {
    CollectiveFlags one;
    one.collective = ToString(kind);
    XCCL_ASSIGN_OR_RETURN(Collective collective, MakeCollective(one, topology));
    collectives.push_back(std::move(collective));
  }
  return collectives;
}

// Plans are written first, the index last. A book that is cut short thus has no index and is not a book.
Status WriteBook(const Tuned& tuned, const MachineModel& machine, const std::string& directory) {
  for (size_t i = 0; i < tuned.plans.size(); ++i)
    XCCL_RETURN_IF_ERROR(WritePlan(tuned.plans[i], directory + "/" + tuned.entries[i].file));
  XCCL_RETURN_IF_ERROR(WriteMachineModel(machine, directory + "/machine.json"));
  return WritePlanBook({directory, tuned.entries});
}

Status Show(const Tuned& tuned, const MachineModel& machine, const Flags& flags, const Session& session) {
  if (session.json) {
    std::vector<Row> rows;
    for (const TunedRow& row : tuned.rows)
      rows.push_back({{"collective", row.collective},
                      {"size_bytes", row.size_bytes},
                      {"engine", row.engine},
                      {"time_us", row.measured_us},
                      {"predicted_us", row.predicted_us},
                      {"ctas", int64_t{row.threadblocks}},
                      {"file", row.file}});
    return Print(ToJson(rows));
  }
  const ProtocolCost& simple = machine.CostOf(Protocol::kSimple);
  std::vector<std::vector<std::string>> table = {
      {"collective", "size", "engine", "time us", "predicted us", "CTAs", "plan"}};
  for (const TunedRow& row : tuned.rows)
    table.push_back({row.collective, SizeText(row.size_bytes), row.engine,
                     fmt::format("{:.1f}", row.measured_us), fmt::format("{:.1f}", row.predicted_us),
                     fmt::format("{}", row.threadblocks), row.file});
  return Print(fmt::format(
      "machine: launch {}, hop {}, {} a threadblock ({})\n{}book: {} of {} plans; xccl-synth run {}\n",
      FormatDurationShort(machine.launch_ps), FormatDurationShort(simple.hop_ps),
      FormatBandwidthShort(static_cast<double>(simple.block_bytes_per_s)), machine.source, TableText(table),
      flags.output, tuned.plans.size(), flags.output));
}

Status TuneMachine(const Flags& flags, const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const Topology topology, ReadTopology(flags.topology, false));
  TuneRequest request;
  XCCL_ASSIGN_OR_RETURN(request.pipeline, PlanOptionsOf(flags.plan, session));
  XCCL_ASSIGN_OR_RETURN(request.sizes_bytes, ParseSizesFlag(flags.sizes));
  std::ranges::sort(request.sizes_bytes);
  XCCL_ASSIGN_OR_RETURN(request.collectives, Collectives(flags.collectives, topology));
  for (const Collective& collective : request.collectives)
    for (const int64_t size : request.sizes_bytes)
      XCCL_RETURN_IF_ERROR(CheckNotEmpty("--sizes", size, collective));
  if (topology.num_ranks() < 2)
    return InvalidInput(topology.name() + ": 1 rank; expected at least 2, to measure a hop");
  XCCL_RETURN_IF_ERROR(MakePlanBookDirectory(flags.output));  // before long measurements
  const bool gpus = flags.backend == "cuda";
  XCCL_ASSIGN_OR_RETURN(const Measure measure, MeasureOf(flags, topology));
  XCCL_ASSIGN_OR_RETURN(
      const Tuned tuned, WithProgress("tuning " + topology.name(), [&](Progress&) -> StatusOr<Tuned> {
        if (!request.pipeline.machine) {
          XCCL_ASSIGN_OR_RETURN(
              request.pipeline.machine,
              MeasureMachine(topology, gpus ? "measured on GPUs" : "measured on CPU threads", gpus, measure));
        }
        return Tune(topology, request, measure);
      }));
  session.is_writing = true;
  XCCL_RETURN_IF_ERROR(WriteBook(tuned, *request.pipeline.machine, flags.output));
  // The measurements are of generated code; without it the book's plans would run on the interpreter kernel.
  if (gpus) XCCL_RETURN_IF_ERROR(WriteBookKernels({flags.output, tuned.entries}, {}, {}).status());
  return Show(tuned, *request.pipeline.machine, flags, session);
}

}  // namespace

void AddTuneCommand(CommandLine& line, Session& session) {
  auto [command, flags] =
      AddCommand(line, session, "tune", "Measure this machine and make a plan book for it", TuneMachine);
  AddTopologyFlags(command, flags.topology);
  command.AddOption("--collectives", flags.collectives, "what to plan, with commas between").ShowDefault();
  command.AddOption("--sizes", flags.sizes, "sizes to plan and measure: 1KiB,1MiB or 1KiB:1GiB:x4")
      .ShowDefault();
  command.AddOption("--backend", flags.backend, "where ranks run: cpu (threads) or cuda")
      .OneOf({"cpu", "cuda"})
      .ShowDefault();
  command.AddOption("--engine,-e", flags.plan.options.engine, "who makes the plans").ShowDefault();
  command.AddOption("--iters", flags.run.iterations, "operations that a time is the mean of")
      .Between(1, 1'000'000)
      .ShowDefault();
  command.AddOption("--ranks-per-gpu", flags.cuda.run.options.ranks_per_gpu, "cuda: ranks that share a GPU")
      .Between(1, 1024)
      .ShowDefault();
  AddSearchFlags(command, flags.plan);
  AddExecutionFlags(command, flags.plan);
  command.AddOption("-o,--output", flags.output, "the plan book: a directory, made where there is none")
      .Required();
  command.AddFlag("--json", session.json, "print the measured rows as JSON");
  command.Footer("Example:\n  xccl-synth tune full-mesh:4 --collectives allreduce -o book");
}

}  // namespace xccl
