// bound: how fast any plan could be.
#include <fmt/core.h>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "ir/bounds/bound.h"
#include "ir/time_model.h"

namespace xccl {
namespace {

struct Flags {
  TopologyFlags topology;
  CollectiveFlags collective;
  std::string size = "64MiB";
  std::string model = "pipelined";
};

Status ShowBound(const Flags& flags, const Session& session) {
  XCCL_ASSIGN_OR_RETURN(const int64_t size_bytes, ParseSizeFlag("--size", flags.size));
  XCCL_ASSIGN_OR_RETURN(const TimeModel model, FlagValue("--model", ParseTimeModel(flags.model)));
  XCCL_ASSIGN_OR_RETURN(const Problem problem, ReadProblem(flags.topology, flags.collective, session.json));
  const Topology& topology = problem.topology;
  const Collective& collective = problem.collective;
  XCCL_RETURN_IF_ERROR(CheckNotEmpty("--size", size_bytes, collective));
  XCCL_ASSIGN_OR_RETURN(
      const Bound bound,
      WithProgress("bounding " + collective.name() + " on " + topology.name(),
                   [&](Progress&) { return LowerBound(topology, collective, size_bytes, model); }));
  Simulation fastest;
  fastest.time_ps = bound.bound_ps;
  fastest.size_bytes = bound.size_bytes;
  const double algbw = fastest.algbw_bytes_per_s();
  if (session.json)
    return Print(ToJson({{"latency_us", PsToUs(bound.latency_ps)},
                         {"bandwidth_us", bound.bandwidth_ps / 1e6},
                         {"bound_us", PsToUs(bound.bound_ps)},
                         {"bound_kind", std::string(ToString(bound.kind))},
                         {"algbw_gb_per_s", GbPerS(algbw)},
                         {"warnings", topology.spec().warnings}}));
  const bool together = bound.kind == BoundKind::kFlowOverTime;
  return Print(fmt::format(
      "{} on {}: {} ranks, {}, {} model\n  bound      {}{}   algbw {}\n  latency    {}\n  bandwidth  {} by "
      "{}\n",
      collective.name(), topology.name(), collective.num_members(), SizeText(bound.size_bytes),
      ToString(model), FormatDurationShort(bound.bound_ps),
      together ? fmt::format(" by {}", ToString(bound.kind)) : "", FormatBandwidthShort(algbw),
      FormatDurationShort(bound.latency_ps), FormatDurationShort(static_cast<int64_t>(bound.bandwidth_ps)),
      ToString(bound.bandwidth_kind)));
}

}  // namespace

void AddBoundCommand(CommandLine& line, Session& session) {
  auto [command, flags] =
      AddCommand(line, session, "bound", "How fast any plan could be: distance, cuts, flows", ShowBound);
  AddTopologyFlags(command, flags.topology);
  AddCollectiveFlags(command, flags.collective);
  command.AddOption("--size,-s", flags.size, "size: 1KiB, 256MiB").ShowDefault();
  command.AddOption("--model", flags.model, "time model: pipelined or blocking").ShowDefault();
  command.AddFlag("--json", session.json, "print the result as JSON");
  command.Footer("Example:\n  xccl-synth bound dgx1 -c allgather -s 1GiB");
}

}  // namespace xccl
