// Runs SimulateProgram, then once more the runs that gave its time, with a log of every event.
#include "ir/simulate/trace_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/units.h"
#include "ir/analysis/program_index.h"
#include "ir/simulate/program_chain.h"
#include "ir/simulate/program_log.h"
#include "ir/simulate/program_paths.h"
#include "ir/simulate/program_run.h"
#include "ir/sizes.h"

namespace xccl {
namespace {

// Returns the number of instructions, and of messages × links, in one pass.
int64_t EventsOfAPass(const Program& program, const ProgramIndex& index) {
  int64_t events = index.size();
  const std::vector<int32_t> group_of = GroupsOfConnections(program);
  for (size_t c = 0; c < program.connections.size(); ++c)
    if (group_of[c] < 0)
      events += std::ssize(program.connections[c].path) * std::ssize(index.SendsOf(static_cast<int32_t>(c)));
  for (const Group& group : program.groups)
    if (HasSwitch(group))
      events += std::ssize(group.path) * std::ssize(index.SendsOf(ConnectionsOf(program, group).front()));
  return events;
}

std::vector<TracedInstruction> RowsOf(const ProgramLog& log, int32_t nodes) {
  std::vector<TracedInstruction> rows(static_cast<size_t>(nodes));
  for (TracedInstruction& row : rows) row.start_ps = std::numeric_limits<int64_t>::max();
  for (const ProgramLog::Instruction& i : log.instructions) {
    TracedInstruction& row = rows[static_cast<size_t>(i.node)];
    row.start_ps = std::min(row.start_ps, i.begin_ps);
    row.end_ps = std::max(row.end_ps, i.end_ps);
    row.busy_ps += i.end_ps - i.begin_ps;
  }
  for (size_t n = 0; n < rows.size(); ++n) {
    rows[n].start_ps = std::min(rows[n].start_ps, rows[n].end_ps);
    rows[n].waits_ps = log.waits_ps[n];
  }
  return rows;
}

std::vector<int64_t> BusyOf(const ProgramLog& log, int32_t links) {
  std::vector<int64_t> busy(static_cast<size_t>(links), 0);
  for (const ProgramLog::Hop& hop : log.hops) busy[hop.link.index()] += hop.end_ps - hop.start_ps;
  return busy;
}

// Extrapolates the rows and loads of the longest run to all passes.
void Extrapolate(const ProgramTrace& before, const ProgramRuns& runs, ProgramTrace& trace) {
  const auto put = [&](int64_t from, int64_t& to, int64_t most = std::numeric_limits<int64_t>::max()) {
    to = std::clamp<int64_t>(OnProgramLine(from, to, runs), 0, most);
  };
  for (size_t n = 0; n < trace.instructions.size(); ++n) {
    TracedInstruction& row = trace.instructions[n];
    const TracedInstruction& earlier = before.instructions[n];
    put(earlier.start_ps, row.start_ps, runs.time_ps);
    put(earlier.end_ps, row.end_ps, runs.time_ps);
    row.end_ps = std::max(row.start_ps, row.end_ps);
    put(earlier.busy_ps, row.busy_ps);
    for (size_t w = 0; w < kNumProgramWaits; ++w) put(earlier.waits_ps[w], row.waits_ps[w]);
  }
  for (size_t l = 0; l < trace.link_busy_ps.size(); ++l)
    put(before.link_busy_ps[l], trace.link_busy_ps[l], runs.time_ps);
}

void AddSlices(const ProgramLog& log, int64_t most, int64_t launch_ps, ProgramTrace& trace) {
  if (std::ssize(log.instructions) > most || std::ssize(log.hops) > most) return;
  for (const ProgramLog::Instruction& i : log.instructions)
    trace.slices.push_back({i.node, i.pass, i.reached_ps + launch_ps, i.begin_ps + launch_ps,
                            i.end_ps + launch_ps,
                            i.begin_ps > i.reached_ps ? i.cause : ProgramWait::kNothing});
  for (const ProgramLog::Hop& hop : log.hops) {
    const ProgramLog::Instruction& sender = log.instructions[static_cast<size_t>(hop.sender)];
    trace.hops.push_back(
        {sender.node, sender.pass, hop.link, hop.start_ps + launch_ps, hop.end_ps + launch_ps});
  }
}

// Moves the times of instructions and pieces behind the launch, and adds the launch as the first piece.
void AddLaunch(int64_t launch_ps, std::vector<PathPiece>& last_first, ProgramTrace& trace) {
  for (TracedInstruction& row : trace.instructions) {
    row.start_ps += launch_ps;
    row.end_ps += launch_ps;
  }
  for (PathPiece& piece : last_first) {
    piece.start_ps += launch_ps;
    piece.end_ps += launch_ps;
  }
  last_first.push_back({PathKind::kLaunch, 0, launch_ps, {}, {}, {}});
}

}  // namespace

std::string_view ToString(ProgramWait wait) {
  switch (wait) {
    case ProgramWait::kNothing:
      return "nothing";
    case ProgramWait::kThreadblock:
      return "threadblock";
    case ProgramWait::kHandOff:
      return "hand-off";
    case ProgramWait::kMessage:
      return "message";
    case ProgramWait::kSlot:
      return "slot";
    case ProgramWait::kLink:
      return "link";
  }
  return "";
}

StatusOr<ProgramTrace> TraceProgram(const Program& program, const Collective& collective,
                                    const Topology& topology, const SimulateOptions& options,
                                    const ProgramTraceOptions& trace_options) {
  ProgramTrace trace;
  XCCL_RETURN_IF_ERROR(CheckPaths(program));
  const CollectiveSizes sizes(collective, options.size_bytes);
  const ProgramIndex index(program);
  const ProgramSetting setting{
      program, collective, sizes, index, topology, options, NumPasses(program, sizes)};
  XCCL_ASSIGN_OR_RETURN(const ProgramRuns runs, RunAllPasses(setting));
  const int64_t events = EventsOfAPass(program, index) * runs.longest;
  if (events > trace_options.most_events)
    return LimitReached(fmt::format("the simulation has {} events; a trace holds at most {}", events,
                                    trace_options.most_events));
  if (runs.time_ps >= kForeverPs) return LimitReached("the program takes longer than times can say");
  trace.simulation = SimulationOf(setting, runs);
  const int64_t launch_ps = trace.simulation.time_ps - runs.time_ps;
  trace.passes = setting.passes;
  trace.ran_passes = runs.longest;
  const auto gather = [&](const ProgramLog& log, ProgramTrace& into) {
    into.instructions = RowsOf(log, index.size());
    into.link_busy_ps = BusyOf(log, topology.num_links());
  };
  ProgramLog log;
  XCCL_ASSIGN_OR_RETURN(const int64_t ran_ps, RunProgram(setting, runs.longest, runs.extrapolated, &log));
  gather(log, trace);
  XCCL_ASSIGN_OR_RETURN(std::vector<PathPiece> chain, ChainOf(log, index, topology, ran_ps));
  if (runs.extrapolated) {
    ProgramTrace before;
    XCCL_RETURN_IF_ERROR(RunProgram(setting, runs.longest / 2, true, &log).status());
    gather(log, before);
    Extrapolate(before, runs, trace);
  } else {
    AddSlices(log, trace_options.most_slices, launch_ps, trace);
  }
  AddLaunch(launch_ps, chain, trace);
  trace.critical_path = MakeCriticalPath(std::move(chain), trace.simulation.time_ps, Elastic::kAllButLaunch);
  return trace;
}

}  // namespace xccl
