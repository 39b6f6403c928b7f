// compare: engines ranked per size, with their distance from the bound; machines side by side; and the cost
// of failures.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/files.h"
#include "base/standard_streams.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/experts.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/limits.h"
#include "cli/output.h"
#include "cli/pages.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/show.h"
#include "interchange/common/foreign.h"
#include "interchange/traces/calls.h"
#include "interchange/traces/nccl_tests.h"
#include "pipeline/import.h"
#include "pipeline/job_calls.h"
#include "pipeline/view/comparison.h"
#include "pipeline/view/comparison_chart.h"
#include "pipeline/view/failures.h"
#include "synth/engines.h"

namespace xccl {
namespace {

constexpr const char* kSizes = "1KiB:1GiB:x16";
constexpr size_t kMostSizesOfJob = 16;

struct Flags {
  TopologiesFlags topology;
  CollectiveFlags collective;
  ExpertFlags experts;
  PlanFlags plan;
  std::string sizes;  // empty: a log's, else kSizes
  std::string engines;
  bool csv = false;
  std::string html, svg;
  std::string chart, width = "3.4in", font = "8pt";  // of svg; no chart: all charts
  std::string with;                                  // files of other tools
  FailureOptions failures;
  std::optional<Command> command = {};
};

// Shows each size as it ends, as text or CSV; JSON is one value and comes last.
class Shown {
 public:
  Shown(const Flags& flags, const Session& session) : flags_(flags), session_(session) {}

  Status Size(const Comparison& of_size) {
    if (session_.json) return OkStatus();
    XCCL_RETURN_IF_ERROR(Print(flags_.csv ? ToCsv(ToRows(of_size), first_) : CompareText(of_size, first_)));
    first_ = false;
    session_.has_rows = true;
    return OkStatus();
  }

 private:
  const Flags& flags_;
  const Session& session_;
  bool first_ = true;
};

// Forms for machines list what was left out on standard error.
void SaySkipped(const std::vector<std::string>& skipped) { PrintError(Visible(SkippedText(skipped))); }

Origin OriginOf(const Session& session) { return {session.version, session.command_line}; }

Status CompareOnFailures(const Problem& problem, const std::vector<std::string>& engines,
                         const std::vector<int64_t>& sizes, const PlanOptions& options, const Flags& flags,
                         const Session& session) {
  XCCL_ASSIGN_OR_RETURN(
      const FailureComparison comparison,
      WithProgress("comparing engines on failed " + problem.topology.name(), [&](Progress&) {
        return CompareFailures(problem.topology, problem.collective, engines, sizes, options, flags.failures);
      }));
  session.is_writing = true;
  const std::vector<Row> rows = ToRows(comparison);
  const bool text = !session.json && !flags.csv;
  if (!text && !comparison.fewer.empty()) PrintError(comparison.fewer + "\n");
  if (!text) SaySkipped(comparison.skipped);
  const Status printed = Print(text ? CompareText(comparison) : session.json ? ToJson(rows) : ToCsv(rows));
  // The files are worth as much where nobody reads the rows, and the rows where a file cannot be written.
  Status written;
  if (!flags.html.empty())
    written = WriteFileAtomically(
        flags.html, FailuresPage(kFailuresPage, comparison, problem.topology, OriginOf(session)));
  if (!flags.svg.empty()) {
    const Status drawn = WriteFileAtomically(flags.svg, FailuresSvg(comparison, OriginOf(session)));
    if (written.ok()) written = drawn;
  }
  return printed.ok() ? written : printed;
}

// The files among --with that are logs of one job's calls.
struct Job {
  std::vector<std::string> files;
  JobCalls calls;
};
StatusOr<Job> JobOf(const Flags& flags) {
  Job job;
  CallLogReader reader;
  for (const std::string& file : flags.with.empty() ? std::vector<std::string>() : Split(flags.with, ',')) {
    XCCL_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
    if (IsNcclTests(text) || !IsCallLog(text)) continue;
    XCCL_RETURN_IF_ERROR(reader.Add(text, file));
    job.files.push_back(file);
  }
  if (job.files.empty()) return job;
  XCCL_ASSIGN_OR_RETURN(job.calls, CallsOfJob(reader.Finish()));
  return job;
}

// The files that --with names: plans of other tools, which must be for the same collective, and measured
// times.
struct Others {
  std::vector<OtherPlan> plans;
  std::vector<MeasuredTimes> measured;
};
StatusOr<Others> OthersOf(const Flags& flags, const Problem& problem, const PlanOptions& lowering,
                          const std::vector<int64_t>& sizes, const Job& job) {
  Others others;
  if (flags.with.empty()) return others;
  const CollectiveSpec& wanted = problem.collective.spec();
  ImportOptions options{
      .collective = wanted.kind,
      .beside = "a table, JSON or CSV of nccl-tests or rccl-tests, or a log of a job's calls"};
  if (wanted.root) options.root = *wanted.root;
  std::set<std::string> names;
  if (!job.files.empty()) {
    const std::string& file = job.files[0];
    SayWarnings(job.calls.warnings);
    XCCL_ASSIGN_OR_RETURN(MeasuredTimes measured, MeasuredByJob(job.calls, file.substr(file.rfind('/') + 1),
                                                                file, problem.collective, sizes));
    others.measured.push_back(std::move(measured));
  }
  for (const std::string& file : Split(flags.with, ',')) {
    if (std::ranges::find(job.files, file) != job.files.end()) continue;
    std::string name = file.substr(file.rfind('/') + 1);
    if (!names.insert(name).second) name = file;
    XCCL_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
    if (IsNcclTests(text)) {
      XCCL_ASSIGN_OR_RETURN(const std::vector<NcclTestsRun> runs, ReadNcclTests(text, file));
      XCCL_ASSIGN_OR_RETURN(std::vector<MeasuredTimes> measured,
                            MeasuredBeside(runs, name, file, problem.collective, sizes));
      std::ranges::move(measured, std::back_inserter(others.measured));
      continue;
    }
    XCCL_ASSIGN_OR_RETURN(ImportedPlan imported, ImportPlan(file, options, problem.topology, lowering));
    if (!(imported.plan.collective.spec() == wanted))
      return InvalidInput(fmt::format(
          "{}: {} of {}; expected {} of {}, as is compared", file, imported.plan.collective.name(),
          Counted(imported.plan.collective.num_members(), "rank"), problem.collective.name(),
          Counted(problem.collective.num_members(), "rank")));
    SayWarnings(imported.warnings);
    others.plans.push_back({name, std::move(imported.plan)});
  }
  return others;
}

// Every topology with the collective on its ranks.
StatusOr<std::vector<Problem>> ReadProblems(const Flags& flags, const std::vector<int64_t>& sizes) {
  std::vector<Problem> problems;
  for (const std::string& text : flags.topology.topologies) {
    StatusOr<Problem> problem = ReadProblem({text, flags.topology.load}, flags.collective, false);
    if (!problem.ok())
      return flags.topology.topologies.size() > 1 &&
                     problem.status().message().find(text) == std::string::npos
                 ? Annotate(problem.status(), text)
                 : problem.status();
    for (const int64_t size : sizes)
      XCCL_RETURN_IF_ERROR(CheckNotEmpty("--sizes", size, problem->collective));
    problems.push_back(*std::move(problem));
  }
  return problems;
}

// Machines with their names. If several machines share a name, each is named as the user typed it.
StatusOr<std::vector<ComparedMachine>> MachinesOf(const std::vector<Problem>& problems, const Flags& flags) {
  const std::vector<std::string>& typed = flags.topology.topologies;
  std::vector<ComparedMachine> machines;
  for (size_t i = 0; i < problems.size(); ++i) {
    if (std::ranges::count(typed, typed[i]) > 1)
      return UsageError(fmt::format("TOPOLOGY: '{}' twice; expected different ones", typed[i]));
    const std::string& name = problems[i].topology.name();
    const bool shared = std::ranges::count_if(problems, [&](const Problem& problem) {
                          return problem.topology.name() == name;
                        }) > 1;
    machines.push_back({shared ? typed[i] : name, &problems[i].topology, &problems[i].collective});
  }
  return machines;
}

Status WriteSvg(const Comparison& comparison, const Flags& flags, const Session& session) {
  if (flags.chart.empty())
    return WriteFileAtomically(flags.svg, ComparisonSvg(comparison, OriginOf(session)));
  XCCL_ASSIGN_OR_RETURN(const FigureSize size, ParseFigureSize(flags.width, flags.font));
  XCCL_ASSIGN_OR_RETURN(const std::string svg,
                        ComparisonChart(comparison, flags.chart, size, OriginOf(session)));
  return WriteFileAtomically(flags.svg, svg);
}

Status WritePictures(const Comparison& comparison, std::span<const ComparedMachine> machines,
                     const Flags& flags, const Session& session) {
  Status written;
  if (!flags.html.empty())
    written = WriteFileAtomically(flags.html,
                                  ComparisonPage(kComparePage, comparison, machines, OriginOf(session)));
  if (flags.svg.empty()) return written;
  const Status drawn = WriteSvg(comparison, flags, session);
  return written.ok() ? drawn : written;
}

// Prints the end of the output: as JSON all of it; as text or CSV the part that no size has shown.
Status PrintRest(const Comparison& comparison, const Flags& flags, const Session& session) {
  if (!session.json && !flags.csv) return Print(SkippedText(comparison.skipped));
  SaySkipped(comparison.skipped);
  return session.json ? Print(ToJson(ToRows(comparison))) : OkStatus();
}

// One topology or several.
StatusOr<Comparison> CompareOn(std::span<const ComparedMachine> machines,
                               const std::vector<std::string>& engines, const std::vector<int64_t>& sizes,
                               const PlanOptions& options, const Others& others, Shown& shown) {
  const std::string what = machines.size() > 1 ? fmt::format("comparing {} machines", machines.size())
                                               : "comparing engines on " + machines[0].topology->name();
  return WithProgress(what, [&](Progress& progress) {
    const auto show = [&, ended = size_t{0}](const Comparison& of_size) mutable {
      progress.Done(++ended, sizes.size());
      return progress.Above([&] { return shown.Size(of_size); });
    };
    if (machines.size() > 1) return CompareMachines(machines, engines, sizes, options, show);
    return Compare(*machines[0].topology, *machines[0].collective, engines, sizes, options, show,
                   others.plans, others.measured);
  });
}

Status RunCompare(const Flags& flags, const Session& session) {
  XCCL_RETURN_IF_ERROR(CheckFlagsOfExperts(*flags.command, flags.collective.collective));
  if (IsExpertCall(flags.collective.collective))
    return CompareExperts(flags.topology, flags.collective.collective, flags.experts,
                          flags.plan.options.request.seed, session);
  XCCL_ASSIGN_OR_RETURN(PlanOptions options, PlanOptionsOf(flags.plan, session));
  SetMemoryHint(kChunksHint);
  options.deadline = CatchInterrupt(options.deadline);
  const bool several = flags.topology.topologies.size() > 1;
  for (const auto& [flag, is_given] :
       {std::pair("--failures", flags.failures.draws > 0), std::pair("--with", !flags.with.empty())})
    if (several && is_given)
      return UsageError(
          fmt::format("{}: {} topologies; expected one", flag, flags.topology.topologies.size()));
  if (flags.failures.draws > 0 && !flags.plan.machine.empty() && flags.plan.machine != "none")
    return UsageError("--failures: compares schedules, on ideal links; expected no --machine");
  XCCL_RETURN_IF_ERROR(ParseFigureSize(flags.width, flags.font).status());
  for (const std::string& file : {flags.html, flags.svg})
    if (!file.empty()) XCCL_RETURN_IF_ERROR(CheckWritable(file));  // before a long search
  XCCL_ASSIGN_OR_RETURN(const Job job, JobOf(flags));
  const bool of_job = flags.sizes.empty() && !job.files.empty();
  XCCL_ASSIGN_OR_RETURN(std::vector<int64_t> sizes,
                        ParseSizesFlag(flags.sizes.empty() ? kSizes : flags.sizes));
  XCCL_ASSIGN_OR_RETURN(const std::vector<Problem> problems,
                        ReadProblems(flags, of_job ? std::vector<int64_t>() : sizes));
  if (of_job) sizes = SizesOfJob(job.calls, problems[0].collective, kMostSizesOfJob);
  XCCL_ASSIGN_OR_RETURN(const std::vector<ComparedMachine> machines, MachinesOf(problems, flags));
  const std::vector<std::string> engines =
      flags.engines.empty() ? std::vector<std::string>() : Split(flags.engines, ',');
  if (std::ranges::find(engines, "all") == engines.end())
    XCCL_RETURN_IF_ERROR(ListValue("--engines", flags.engines, FindEngine).status());
  if (flags.failures.draws > 0)
    return CompareOnFailures(problems[0], engines, sizes, options, flags, session);
  XCCL_ASSIGN_OR_RETURN(const Others others, OthersOf(flags, problems[0], options, sizes, job));
  Shown shown(flags, session);
  XCCL_ASSIGN_OR_RETURN(const Comparison comparison,
                        CompareOn(machines, engines, sizes, options, others, shown));
  session.is_writing = true;
  const Status printed = PrintRest(comparison, flags, session);
  const Status drawn = WritePictures(comparison, machines, flags, session);
  return printed.ok() ? drawn : printed;
}

}  // namespace

void AddCompareCommand(CommandLine& line, Session& session) {
  auto [command, flags] = AddCommand(line, session, "compare",
                                     "Rank engines per size, with their distance from the bound", RunCompare);
  flags.command = command;
  AddTopologiesFlags(command, flags.topology, "to compare them");
  AddCollectiveFlags(command, flags.collective);
  command.AddOption("--sizes,-s", flags.sizes,
                    "1KiB,1MiB or 1KiB:1GiB:x4 (default: those of a job's log, else 1KiB:1GiB:x16)");
  command.AddOption(
      "--engines", flags.engines,
      "ring,tree,... or all (default: all but smt, which may search for long; of several machines, auto)");
  AddExpertCounts(command, flags.experts);
  AddExpertFlags(command, flags.experts);
  AddSearchFlags(command, flags.plan);
  AddMachineFlag(command, flags.plan, "rank programs by their time on this machine");
  const Option csv = command.AddFlag("--csv", flags.csv, "print CSV");
  command.AddOption("--html", flags.html, "also write a page with charts and tables to this file");
  const Option svg = command.AddOption("--svg", flags.svg, "also write the charts as a picture to this file");
  const Option chart =
      command.AddOption("--chart", flags.chart, "with --svg: write only this chart, as a figure for a paper")
          .OneOf(ChartNames())
          .Needs(svg);
  command.AddOption("--width", flags.width, "the figure's width: 3.4in, 86mm, 8.6cm or 245pt")
      .Needs(chart)
      .ShowDefault();
  command.AddOption("--font", flags.font, "size of the figure's texts: 8pt, 2.8mm")
      .Needs(chart)
      .ShowDefault();
  const Option failures =
      command
          .AddOption("--failures", flags.failures.draws,
                     "compare on so many draws of the machine with failed cables, beside a repaired plan")
          .Between(1, 1000)
          .Excludes(chart);
  command.AddOption("--failed-cables", flags.failures.cables, "cables that fail in a draw")
      .Between(1, 1 << 20)
      .Needs(failures)
      .ShowDefault();
  command
      .AddOption(
          "--with", flags.with,
          "also rank these plans of other tools, on this machine: A.xml,B.xml (see import), and what\n"
          "nccl-tests or rccl-tests measured out of place: a job's log with its tables, JSON or CSV;\n"
          "and what a job called, with its times: logs of XCCL_LOG_CALLS or of NCCL (see book --from-log)")
      .Excludes(failures);
  command.AddFlag("--json", session.json, "print the result as JSON").Excludes(csv);
  command.Footer(
      "Examples:\n"
      "  xccl-synth compare dgx-a100 -c allreduce --sizes 1KiB:1GiB:x4\n"
      "  xccl-synth compare torus:8x8 -c allgather --engines ring,greedy,auto --html torus.html\n"
      "  xccl-synth compare dgx-h100 -c allreduce --sizes 1KiB:1GiB:x4 --svg figure.svg\n"
      "  xccl-synth compare dgx-h100 -c allreduce --sizes 1KiB:1GiB:x4 --svg figure.svg --chart busbw "
      "--width 3.4in\n"
      "  xccl-synth compare dgx-a100 -c allreduce --engines auto --with allpairs.xml,ring.xml\n"
      "  xccl-synth compare dgx-h100 -c allreduce --sizes 1KiB:1GiB:x2 --with all_reduce_perf.json\n"
      "  xccl-synth compare dgx-a100 dgx-h100 mi300x -c allreduce --html machines.html\n"
      "  xccl-synth compare rail-2 -c dispatch --experts 256 --top-k 8 --tokens 4096 --row 7392B\n"
      "  xccl-synth compare torus:8x8 -c allreduce --sizes 64MiB --engines auto --failures 10 "
      "--failed-cables 2");
}

}  // namespace xccl
