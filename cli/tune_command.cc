// tune: measures the machine, plans every collective at every size, runs the plans and keeps the fastest in a
// plan book.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/limits.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/show.h"
#include "ir/collective.h"
#include "ir/collective_args.h"
#include "pipeline/emit.h"
#include "pipeline/measure/hosts.h"
#include "pipeline/measure/machine.h"
#include "pipeline/measure_runs.h"
#include "pipeline/run.h"
#include "pipeline/tune.h"
#include "runtime/plan_book.h"
#include "runtime/run_table.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

struct Flags {
  TopologyFlags topology;
  std::string collectives = "allreduce,allgather,reduce_scatter";
  std::string roots;  // "0,2-3" or "all"; empty: 0
  std::string sizes = "1KiB:64MiB:x16";
  std::string backend = "cpu";
  RunOptions run = {.iterations = 5, .warmup = {}, .in_place = false};
  PlanFlags plan;
  CudaFlags cuda;
  LaunchFlags launch;
  std::string output;
};

// How programs are timed: on CPU ranks, or on GPUs.
StatusOr<RunSettings> SettingsOf(const Flags& flags, LaunchedGroup* group) {
  RunSettings settings{.options = flags.run, .gpus = {}};
  settings.group = group;
  if (flags.backend == "cuda") {
    XCCL_ASSIGN_OR_RETURN(settings.gpus, GpuRunOf(flags.cuda));
  }
  return settings;
}

// Names the machine model of the predicted times, or says why the model was refused.
struct Machine {
  std::optional<MachineModel> model;  // absent: refused
  std::string doubt = {};             // MeasuredMachine::doubt
};

constexpr const char* kWithoutModel =
    "; the measured times of plans decide, and nothing is predicted; hint: a quieter machine, or --machine";

std::string DescribeModel(const Machine& machine) {
  if (!machine.model) return machine.doubt + kWithoutModel;
  const ProtocolCost& simple = machine.model->CostOf(Protocol::kSimple);
  return fmt::format("launch {}, hop {}, {} a threadblock ({})",
                     FormatDurationShort(machine.model->launch_ps), FormatDurationShort(simple.hop_ps),
                     FormatBandwidthShort(static_cast<double>(simple.block_bytes_per_s)),
                     machine.model->source);
}

// Says how often the times were measured and how much they vary.
std::string DescribeTimes(const Tuned& tuned) {
  const auto [fewest, most] = std::ranges::minmax(tuned.rows, {}, &TunedRow::samples);
  const double spread = std::ranges::max(tuned.rows, {}, &TunedRow::spread).spread;
  return fmt::format("medians of {} to {} samples; spread is their standard error, at most {:.0f} %",
                     fewest.samples, most.samples, 100 * spread);
}

Status Show(const Tuned& tuned, const Machine& machine, const Flags& flags, const Session& session) {
  const bool predicts = machine.model.has_value();
  if (session.json) {
    if (!predicts) SayNote("machine: " + DescribeModel(machine));
    std::vector<Row> rows;
    for (const TunedRow& row : tuned.rows) {
      Cell root;
      if (row.root) root = int64_t{row.root->value};
      rows.push_back({{"collective", row.collective},
                      {"root", root},
                      {"size_bytes", row.size_bytes},
                      {"engine", row.engine},
                      {"topology", row.topology},
                      {"time_us", row.measured_us},
                      {"time_spread", row.spread},
                      {"samples", int64_t{row.samples}},
                      {"predicted_us", predicts ? Cell(row.predicted_us) : Cell()},
                      {"ctas", int64_t{row.threadblocks}},
                      {"file", row.file}});
    }
    return Print(ToJson(rows));
  }
  std::vector<std::vector<std::string>> table = {
      {"collective", "size", "engine", "topology", "time us", "time spread", "predicted us", "CTAs", "plan"}};
  for (const TunedRow& row : tuned.rows)
    table.push_back({row.root ? fmt::format("{} root {}", row.collective, row.root->value) : row.collective,
                     SizeText(row.size_bytes), row.engine, row.topology,
                     fmt::format("{:.1f}", row.measured_us), fmt::format("{:.0f} %", 100 * row.spread),
                     predicts ? fmt::format("{:.1f}", row.predicted_us) : "-",
                     fmt::format("{}", row.threadblocks), row.file});
  return Print(fmt::format("machine: {}\ntimes: {}\n{}book: {} of {}; xccl-synth run {}\n",
                           DescribeModel(machine), DescribeTimes(tuned), TableText(table), flags.output,
                           Counted(std::ssize(tuned.plans), "plan"), flags.output));
}

// The machine that the processes of a launcher are, as they measure it.
StatusOr<Topology> MeasuredTopology(const Flags& flags, LaunchedGroup& group) {
  const Bootstrap& met = group.bootstrap();
  MeasuredHosts blank;
  blank.host_of = met.hosts();
  blank.names = met.host_names();
  blank.out.assign(blank.names.size(), 1);
  blank.in = blank.out;
  blank.leaf.assign(blank.names.size(), 0);
  blank.up = blank.down = {1};
  XCCL_ASSIGN_OR_RETURN(const Topology unknown, TopologyOf(blank, ""));
  XCCL_ASSIGN_OR_RETURN(const RunSettings settings, SettingsOf(flags, &group));
  XCCL_ASSIGN_OR_RETURN(const MeasuredHosts measured,
                        MeasureHosts(met.hosts(), met.host_names(), MeasureByRunning(settings, unknown)));
  if (met.rank() == Rank(0))
    for (const std::string& notice : measured.notices) SayNote(notice);
  return TopologyOf(measured, fmt::format("measured between {} processes", met.ranks()));
}

// The descriptions of the machine: first the topology that its processes measured, where there are several
// processes; then the topology that the user gave.
StatusOr<std::vector<Topology>> DescribeMachine(const Flags& flags, LaunchedGroup* group) {
  std::optional<Topology> given;
  if (!flags.topology.topology.empty()) {
    XCCL_ASSIGN_OR_RETURN(given, ReadTopology(flags.topology, false));
    if (group != nullptr && given->num_ranks() != group->bootstrap().ranks())
      return InvalidInput(fmt::format("{}: {} ranks; expected {}, the processes that were started",
                                      given->name(), given->num_ranks(), group->bootstrap().ranks()));
  } else if (group == nullptr) {
    return UsageError(
        "TOPOLOGY: missing; expected one, or processes that measure their machine; hint: mpirun -n 8");
  }
  std::vector<Topology> all;
  if (group != nullptr) {
    XCCL_ASSIGN_OR_RETURN(Topology measured, MeasuredTopology(flags, *group));
    all.push_back(std::move(measured));
  }
  if (given) all.push_back(*std::move(given));
  if (all[0].num_ranks() < 2)
    return InvalidInput(all[0].name() + ": 1 rank; expected at least 2, to measure a hop");
  return all;
}

// Returns the cost of messages beside their links. Between hosts the measured links have all of it. A model
// that was measured and cannot be trusted is left out.
StatusOr<Machine> ChooseMachine(const Flags& flags, const Topology& topology, LaunchedGroup* group,
                                const Measure& measure, const std::optional<MachineModel>& given) {
  if (given) return Machine{given};
  if (group != nullptr) {
    MachineModel links;
    links.source = "in the links of topology.xml";
    return Machine{links};
  }
  const bool gpus = flags.backend == "cuda";
  XCCL_ASSIGN_OR_RETURN(
      MeasuredMachine measured,
      MeasureMachine(topology, gpus ? "measured on GPUs" : "measured on CPU threads", gpus, measure));
  if (!measured.doubt.empty()) return Machine{std::nullopt, std::move(measured.doubt)};
  return Machine{std::move(measured.model)};
}

bool IsFirstOfHost(const Bootstrap& met) {
  const std::vector<int32_t>& hosts = met.hosts();
  return std::ranges::find(hosts, hosts[met.rank().index()]) == hosts.begin() + met.rank().value;
}

Status TuneRanks(const Flags& flags, const Session& session, LaunchedGroup* group) {
  // Every host gets the book: its first rank writes it.
  const bool writes = group == nullptr || IsFirstOfHost(group->bootstrap());
  const bool shows = group == nullptr || group->bootstrap().rank() == Rank(0);
  TuneRequest request;
  XCCL_ASSIGN_OR_RETURN(request.pipeline, PlanOptionsOf(flags.plan, session));
  SetMemoryHint(kChunksHint);
  XCCL_ASSIGN_OR_RETURN(request.sizes_bytes, ParseSizesFlag(flags.sizes));
  std::ranges::sort(request.sizes_bytes);
  if (writes) XCCL_RETURN_IF_ERROR(MakePlanBookDirectory(flags.output));  // before long measurements
  XCCL_ASSIGN_OR_RETURN(const std::vector<Topology> machines, DescribeMachine(flags, group));
  XCCL_ASSIGN_OR_RETURN(request.collectives, CollectivesOf(flags.collectives, flags.roots, machines[0]));
  for (const Collective& collective : request.collectives)
    for (const int64_t size : request.sizes_bytes)
      XCCL_RETURN_IF_ERROR(CheckNotEmpty("--sizes", size, collective));
  XCCL_ASSIGN_OR_RETURN(const RunSettings settings, SettingsOf(flags, group));
  const Measure measure = MeasureRepeatedly(settings, machines[0]);
  Machine machine;
  XCCL_ASSIGN_OR_RETURN(
      const Tuned tuned,
      WithProgress("tuning " + machines[0].name(), [&](Progress& progress) -> StatusOr<Tuned> {
        request.on_collective = [&](size_t done, size_t all) { progress.Done(done, all); };
        progress.Say("measuring the machine");
        XCCL_ASSIGN_OR_RETURN(machine,
                              ChooseMachine(flags, machines[0], group, measure, request.pipeline.machine));
        progress.Say("measuring plans");
        request.pipeline.machine = machine.model;
        request.pipeline.machine_of_topology = !machine.model;
        return Tune(machines, request, measure);
      }));
  if (!writes) return OkStatus();
  session.is_writing = true;
  if (group != nullptr)
    XCCL_RETURN_IF_ERROR(WriteFileAtomically(flags.output + "/topology.xml", WriteNativeXml(machines[0])));
  XCCL_RETURN_IF_ERROR(WriteBook(tuned.entries, tuned.plans, machine.model, flags.output));
  EndOnInterrupt("xccl-synth: interrupted; the book is written, perhaps without all of its kernels\n");
  // The measurements are of generated code; without it the book's plans would run on the interpreter kernel.
  if (flags.backend == "cuda")
    XCCL_RETURN_IF_ERROR(WriteBookKernels({flags.output, tuned.entries}, {}, {}).status());
  return shows ? Show(tuned, machine, flags, session) : OkStatus();
}

Status TuneMachine(const Flags& flags, const Session& session) {
  XCCL_ASSIGN_OR_RETURN(std::unique_ptr<LaunchedGroup> group, JoinGroup(flags.launch, flags.run.time_limit));
  if (flags.backend == "cuda" && group != nullptr)
    return InvalidInput(
        fmt::format("tune --backend cuda: {} processes were started; expected one, which "
                    "measures the GPUs of its host",
                    group->bootstrap().ranks()));
  const bool is_new = !PathExists(flags.output);
  EndOnInterrupt("xccl-synth: interrupted; no book is written\n", is_new ? flags.output.c_str() : nullptr);
  Status status = TuneRanks(flags, session, group.get());
  std::error_code ignored;
  if (!status.ok() && is_new) std::filesystem::remove(flags.output, ignored);  // where it is empty
  // Without this message all other ranks would wait for this rank.
  if (!status.ok() && group != nullptr) group->bootstrap().Fail(status);
  return status;
}

}  // namespace

void AddTuneCommand(CommandLine& line, Session& session) {
  auto [command, flags] =
      AddCommand(line, session, "tune", "Measure this machine and make a plan book for it", TuneMachine);
  AddTopologyFlags(command, flags.topology, /*required=*/false);
  AddLaunchFlags(command, flags.launch);
  command.AddOption("--collectives", flags.collectives, "what to plan, with commas between").ShowDefault();
  command.AddOption("--root", flags.roots,
                    "roots of broadcast, reduce, gather and scatter: 0,2,4-7 or all (default: 0)");
  command.AddOption("--sizes", flags.sizes, "sizes to plan and measure: 1KiB,1MiB or 1KiB:1GiB:x4")
      .ShowDefault();
  command.AddOption("--backend", flags.backend, "where ranks run: cpu (threads) or cuda")
      .OneOf({"cpu", "cuda"})
      .ShowDefault();
  command.AddOption("--engine,-e", flags.plan.options.engine, "who makes the plans").ShowDefault();
  command
      .AddOption("--iters", flags.run.iterations,
                 "operations of one run; a time is the median of at least 5 samples of runs")
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
  command.Footer(
      "Examples:\n"
      "  xccl-synth tune full-mesh:4 --collectives allreduce -o book\n"
      "  xccl-synth tune full-mesh:4 --collectives broadcast,reduce --root all -o book\n"
      "  mpirun -n 16 xccl-synth tune -o book      (measures hosts and links)");
}

}  // namespace xccl
