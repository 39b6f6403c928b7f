// compare: engines ranked per size, with their distance from the bound.
#include <fmt/core.h>

#include <cstdio>
#include <utility>

#include "base/files.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/pages.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "ir/interchange/foreign.h"
#include "pipeline/import.h"
#include "pipeline/view/comparison.h"

namespace xccl {
namespace {

struct Flags {
  TopologyFlags topology;
  CollectiveFlags collective;
  PlanFlags plan;
  std::string sizes = "1KiB:1GiB:x16";
  std::string engines;
  bool csv = false;
  std::string html, svg;
  std::string with;  // files of other tools
  FailureOptions failures;
};

// Shows each size as it ends, as text or CSV; JSON is one value and comes last.
class Shown {
 public:
  Shown(const Flags& flags, const Session& session) : flags_(flags), session_(session) {}

  Status Size(const Comparison& of_size) {
    if (session_.json) return OkStatus();
    XCCL_RETURN_IF_ERROR(
        Print(flags_.csv ? ToCsv(ToRows(of_size.times, of_size.on), first_) : CompareText(of_size, first_)));
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
void SayLeftOut(const std::vector<std::string>& left_out) {
  std::fputs(LeftOutText(left_out).c_str(), stderr);
}

Status CompareOnFailures(const Problem& problem, const std::vector<std::string>& engines,
                         const std::vector<int64_t>& sizes, const PlanOptions& options, const Flags& flags,
                         const Session& session) {
  XCCL_ASSIGN_OR_RETURN(
      const FailureComparison comparison,
      WithProgress("comparing engines on failed " + problem.topology.name(), [&](Progress&) {
        return CompareFailures(problem.topology, problem.collective, engines, sizes, options, flags.failures);
      }));
  if (!session.json && !flags.csv) return Print(CompareText(comparison));
  SayLeftOut(comparison.left_out);
  const std::vector<Row> rows = ToRows(comparison.times, comparison.on);
  return Print(session.json ? ToJson(rows) : ToCsv(rows));
}

// The plans of other tools, which must be for the same collective.
StatusOr<std::vector<OtherPlan>> OtherPlans(const Flags& flags, const Problem& problem,
                                            const PlanOptions& lowering) {
  std::vector<OtherPlan> others;
  if (flags.with.empty()) return others;
  const CollectiveSpec& wanted = problem.collective.spec();
  ImportOptions options{.collective = wanted.kind};
  if (wanted.root) options.root = *wanted.root;
  for (const std::string& file : Split(flags.with, ',')) {
    XCCL_ASSIGN_OR_RETURN(ImportedPlan imported, ImportPlan(file, options, problem.topology, lowering));
    if (!(imported.plan.collective.spec() == wanted))
      return InvalidInput(fmt::format(
          "{}: {} of {}; expected {} of {}, as is compared", file, imported.plan.collective.name(),
          Counted(imported.plan.collective.num_members(), "rank"), problem.collective.name(),
          Counted(problem.collective.num_members(), "rank")));
    SayWarnings(imported.warnings);
    others.push_back({file.substr(file.rfind('/') + 1), std::move(imported.plan)});
  }
  return others;
}

Status WritePictures(const Comparison& comparison, const Problem& problem, const Flags& flags,
                     const Session& session) {
  if (!flags.html.empty())
    XCCL_RETURN_IF_ERROR(
        WriteFileAtomically(flags.html, ComparisonPage(kComparePage, comparison, problem.topology,
                                                       problem.collective, session.command_line)));
  if (flags.svg.empty()) return OkStatus();
  return WriteFileAtomically(flags.svg, ComparisonSvg(comparison, session.command_line));
}

Status RunCompare(const Flags& flags, const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const PlanOptions options, PlanOptionsOf(flags.plan, session));
  for (const std::string& file : {flags.html, flags.svg})
    if (!file.empty()) XCCL_RETURN_IF_ERROR(CheckWritable(file));  // before a long search
  XCCL_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, ParseSizesFlag(flags.sizes));
  XCCL_ASSIGN_OR_RETURN(const Problem problem, ReadProblem(flags.topology, flags.collective, false));
  for (const int64_t size : sizes) XCCL_RETURN_IF_ERROR(CheckNotEmpty("--sizes", size, problem.collective));
  const std::vector<std::string> engines =
      flags.engines.empty() ? std::vector<std::string>() : Split(flags.engines, ',');
  if (flags.failures.draws > 0) return CompareOnFailures(problem, engines, sizes, options, flags, session);
  XCCL_ASSIGN_OR_RETURN(const std::vector<OtherPlan> others, OtherPlans(flags, problem, options));
  Shown shown(flags, session);
  XCCL_ASSIGN_OR_RETURN(
      const Comparison comparison,
      WithProgress("comparing engines on " + problem.topology.name(), [&](Progress& progress) {
        const auto show = [&, ended = size_t{0}](const Comparison& of_size) mutable {
          progress.Done(++ended, sizes.size());
          return progress.Above([&] { return shown.Size(of_size); });
        };
        return Compare(problem.topology, problem.collective, engines, sizes, options, show, others);
      }));
  session.is_writing = true;
  XCCL_RETURN_IF_ERROR(WritePictures(comparison, problem, flags, session));
  if (!session.json && !flags.csv) return Print(LeftOutText(comparison.left_out));
  SayLeftOut(comparison.left_out);
  return session.json ? Print(ToJson(ToRows(comparison.times, comparison.on))) : OkStatus();
}

}  // namespace

void AddCompareCommand(CommandLine& line, Session& session) {
  auto [command, flags] = AddCommand(line, session, "compare",
                                     "Rank engines per size, with their distance from the bound", RunCompare);
  AddTopologyFlags(command, flags.topology);
  AddCollectiveFlags(command, flags.collective);
  command.AddOption("--sizes", flags.sizes, "1KiB,1MiB or 1KiB:1GiB:x4").ShowDefault();
  command.AddOption("--engines", flags.engines,
                    "ring,tree,... or all (default: all but smt, which may search for long)");
  AddSearchFlags(command, flags.plan);
  AddMachineFlag(command, flags.plan, "rank programs by their time on this machine");
  const Option csv = command.AddFlag("--csv", flags.csv, "print CSV");
  const Option html =
      command.AddOption("--html", flags.html, "also write a page with charts and tables to this file");
  const Option svg = command.AddOption("--svg", flags.svg, "also write the charts as a picture to this file");
  const Option failures =
      command
          .AddOption("--failures", flags.failures.draws,
                     "compare on so many draws of the machine with failed cables, beside a repaired plan")
          .Between(1, 1000)
          .Excludes(html)
          .Excludes(svg);
  command.AddOption("--failed-cables", flags.failures.cables, "cables that fail in a draw")
      .Between(1, 1 << 20)
      .Needs(failures)
      .ShowDefault();
  command
      .AddOption("--with", flags.with,
                 "also rank these plans of other tools, on this machine: A.xml,B.xml (see import)")
      .Excludes(failures);
  command.AddFlag("--json", session.json, "print the result as JSON").Excludes(csv);
  command.Footer(
      "Examples:\n"
      "  xccl-synth compare dgx-a100 -c allreduce --sizes 1KiB:1GiB:x4\n"
      "  xccl-synth compare torus:8x8 -c allgather --engines ring,greedy,auto --html torus.html\n"
      "  xccl-synth compare dgx-h100 -c allreduce --sizes 1KiB:1GiB:x4 --svg figure.svg\n"
      "  xccl-synth compare dgx-a100 -c allreduce --engines auto --with allpairs.xml,ring.xml\n"
      "  xccl-synth compare torus:8x8 -c allreduce --sizes 64MiB --engines auto --failures 10 "
      "--failed-cables 2");
}

}  // namespace xccl
