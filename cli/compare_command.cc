// compare: engines ranked per size, with their distance from the bound.
#include <cstdio>

#include "base/files.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/show.h"

namespace xccl {
namespace {

struct Flags {
  TopologyFlags topology;
  CollectiveFlags collective;
  PlanFlags plan;
  std::string sizes = "1KiB:1GiB:x16";
  std::string engines;
  bool csv = false;
  std::string html;
  FailureOptions failures;
};

// Prints one of three forms. The forms for machines also list what was left out on standard error.
template <typename Comparison>
Status Show(const Comparison& comparison, const Flags& flags, const Session& session) {
  if (session.json || flags.csv)
    for (const std::string& reason : comparison.left_out)
      std::fprintf(stderr, "left out: %s\n", reason.c_str());
  return Print(session.json ? ToJson(ToRows(comparison.times))
               : flags.csv  ? CompareCsv(comparison.times)
                            : CompareText(comparison));
}

Status RunCompare(const Flags& flags, const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const PlanOptions options, PlanOptionsOf(flags.plan, session));
  if (!flags.html.empty()) XCCL_RETURN_IF_ERROR(CheckWritable(flags.html));  // before a long search
  XCCL_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, ParseSizesFlag(flags.sizes));
  XCCL_ASSIGN_OR_RETURN(const Problem problem, ReadProblem(flags.topology, flags.collective, false));
  const Topology& topology = problem.topology;
  const Collective& collective = problem.collective;
  const std::vector<std::string> engines =
      flags.engines.empty() ? std::vector<std::string>() : Split(flags.engines, ',');
  if (flags.failures.draws > 0) {
    XCCL_ASSIGN_OR_RETURN(const FailureComparison comparison,
                          WithProgress("comparing engines on failed " + topology.name(), [&](Progress&) {
                            return CompareFailures(topology, collective, engines, sizes, options,
                                                   flags.failures);
                          }));
    return Show(comparison, flags, session);
  }
  XCCL_ASSIGN_OR_RETURN(const Comparison comparison,
                        WithProgress("comparing engines on " + topology.name(), [&](Progress&) {
                          return Compare(topology, collective, engines, sizes, options);
                        }));
  if (!flags.html.empty()) XCCL_RETURN_IF_ERROR(WriteFileAtomically(flags.html, CompareHtml(comparison)));
  return Show(comparison, flags, session);
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
  const Option csv = command.AddFlag("--csv", flags.csv, "print CSV");
  const Option html = command.AddOption("--html", flags.html, "also write a page with a chart to this file");
  const Option failures =
      command
          .AddOption("--failures", flags.failures.draws,
                     "compare on so many draws of the machine with failed cables, beside a repaired plan")
          .Between(1, 1000)
          .Excludes(html);
  command.AddOption("--failed-cables", flags.failures.cables, "cables that fail in a draw")
      .Between(1, 1 << 20)
      .Needs(failures)
      .ShowDefault();
  command.AddFlag("--json", session.json, "print the result as JSON").Excludes(csv);
  command.Footer(
      "Examples:\n"
      "  xccl-synth compare dgx-a100 -c allreduce --sizes 1KiB:1GiB:x4\n"
      "  xccl-synth compare torus:8x8 -c allgather --engines ring,greedy,auto --html torus.html\n"
      "  xccl-synth compare torus:8x8 -c allreduce --sizes 64MiB --engines auto --failures 10 "
      "--failed-cables 2");
}

}  // namespace xccl
