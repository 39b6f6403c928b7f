// For each plan:
// 1. Compute the bound.
// 2. Simulate the schedule and the program, with a trace if the trace is small enough.
// 3. Write the machine's drawing, the collective, the facts, the schedule, the critical paths and the program
// as JSON. The page holds a list of all plans, and the JSON of each plan in a script element of its own.
#include "pipeline/view/view.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "base/version.h"
#include "ir/analysis/schedule_stats.h"
#include "ir/bounds/bound.h"
#include "ir/known_machines.h"
#include "ir/simulate/simulate_program.h"
#include "ir/sizes.h"
#include "ir/translated.h"
#include "pipeline/view/machine_data.h"
#include "pipeline/view/play_data.h"
#include "pipeline/view/program_data.h"
#include "pipeline/view/schedule_data.h"
#include "pipeline/view/writer.h"

namespace xccl {
namespace {

// All simulations of a plan. A trace is absent if it would be too large; the simulated time is always there.
struct Simulated {
  Bound bound;
  Simulation schedule;
  std::optional<ScheduleTrace> schedule_trace;
  std::string untraced;  // why schedule_trace is absent
  std::optional<Simulation> program;
  std::optional<ProgramTrace> program_trace;
  std::string program_untraced;
};

Status SimulateSchedule(const Plan& plan, const ViewOptions& options, Simulated& simulated) {
  SimulateOptions simulate{.size_bytes = plan.made_by.size_bytes, .model = plan.made_by.model};
  simulate.deadline = options.deadline;
  StatusOr<ScheduleTrace> trace = TraceSchedule(plan.schedule, plan.collective, plan.topology, simulate,
                                                {.most_slices = 0, .most_transfers = kMostTransfers});
  if (trace.ok() && trace->copies == 1) {
    simulated.schedule = trace->simulation;
    simulated.schedule_trace = std::move(*trace);
    return OkStatus();
  }
  simulated.untraced =
      trace.ok() ? fmt::format("{} transfers stand for {} each", plan.schedule.size(), trace->copies)
                 : trace.status().message();
  simulate.record_links = true;
  simulated.schedule = Simulate(plan.schedule, plan.collective, plan.topology, simulate);
  if (simulated.schedule.stopped)
    return LimitReached(options.deadline.Passed() + " while the schedule was simulated");
  return OkStatus();
}

Status SimulateProgramOf(const Plan& plan, const ViewOptions& options, Simulated& simulated) {
  if (!plan.program) return OkStatus();
  const Program& program = plan.program->program;
  SimulateOptions simulate{.size_bytes = plan.made_by.size_bytes, .model = plan.made_by.model};
  simulate.machine = options.machine;
  simulate.deadline = options.deadline;
  StatusOr<ProgramTrace> trace = TraceProgram(program, plan.program->collective, plan.topology, simulate,
                                              {.most_slices = options.most_entries});
  if (trace.ok()) {
    simulated.program = trace->simulation;
    simulated.program_trace = std::move(*trace);
    return OkStatus();
  }
  simulated.program_untraced = trace.status().message();
  XCCL_ASSIGN_OR_RETURN(simulated.program,
                        SimulateProgram(program, plan.program->collective, plan.topology, simulate));
  return OkStatus();
}

void WriteCollective(const Plan& plan, JsonWriter& json) {
  const Collective& collective = plan.collective;
  json.BeginObject();
  json.Member("name", collective.name());
  json.Member("members", collective.ranks());
  json.Key("root");
  if (collective.spec().root)
    json.Value(*collective.spec().root);
  else
    json.Null();
  json.Member("chunks", collective.num_chunks());
  json.Member("parts", collective.num_parts());
  json.Member("reduces", collective.Reduces());
  json.EndObject();
}

void WriteMadeBy(const MadeBy& made, JsonWriter& json) {
  json.BeginObject();
  json.Member("engine", made.engine);
  json.Member("seed", made.seed);
  json.Member("limits", made.limits);
  json.Member("version", made.version);
  json.Member("machine", made.machine);
  json.Member("model", ToString(made.model));
  json.EndObject();
}

void WriteFacts(const Plan& plan, const Simulated& simulated, const ViewOptions& options, JsonWriter& json) {
  const ScheduleStats stats = Stats(plan.schedule, plan.collective, plan.topology);
  const Bound& bound = simulated.bound;
  json.BeginObject();
  json.Member("size_bytes", simulated.schedule.size_bytes);
  json.Member("time_ps", simulated.schedule.time_ps);
  json.Key("program_time_ps");
  if (simulated.program)
    json.Integer(simulated.program->time_ps);
  else
    json.Null();
  json.Member("machine_source", options.machine == nullptr ? std::string() : options.machine->source);
  const bool lacks_machine = options.machine == nullptr && !options.links_alone;
  json.Member("no_machine", lacks_machine ? WhyNoModel(plan.topology.gpu_arch()) : std::string());
  json.Member("bound_ps", bound.bound_ps);
  json.Member("bound_kind", ToString(bound.kind));
  json.Member("latency_ps", bound.latency_ps);
  json.Key("bandwidth_ps");
  json.Number(bound.bandwidth_ps);
  json.Key("bus_factor");
  json.Number(BusFactor(plan.collective.kind(), plan.collective.num_members()));
  json.Member("meets_bound", MeetsBound(simulated.schedule.time_ps, bound));
  json.Key("bitwise_same");
  if (plan.bitwise_same)
    json.Bool(*plan.bitwise_same);
  else
    json.Null();
  json.Member("steps", stats.steps);
  json.Member("transfers", stats.transfers);
  json.Member("messages", stats.messages);
  json.EndObject();
}

void WriteCriticalPaths(const Plan& plan, const Simulated& simulated, bool with_messages, JsonWriter& json) {
  json.Key("critical");
  if (simulated.schedule_trace)
    view::WriteCritical(simulated.schedule_trace->critical_path, nullptr, with_messages, json);
  else
    json.Null();
  json.Key("program_critical");
  if (simulated.program_trace)
    view::WriteCritical(simulated.program_trace->critical_path, &plan.program->program, false, json);
  else
    json.Null();
}

std::string PlanJson(const Plan& plan, const Simulated& simulated, const ViewOptions& options) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject();
  view::WriteMachine(plan.topology, json);
  json.Key("collective");
  WriteCollective(plan, json);
  json.Key("made_by");
  WriteMadeBy(plan.made_by, json);
  json.Key("facts");
  WriteFacts(plan, simulated, options, json);
  json.Key("schedule");
  const bool program_plays = simulated.program_trace.has_value();
  bool with_messages = false;
  if (simulated.schedule_trace) {
    with_messages = !program_plays && view::ShowsMessages(plan, *simulated.schedule_trace, options);
    view::WriteSchedule(plan, *simulated.schedule_trace, options, !program_plays, json);
  } else {
    view::WriteUntraced(plan, simulated.schedule, simulated.untraced, json);
  }
  json.Key("played");
  if (program_plays)
    view::WritePlay(plan, *simulated.program_trace, options, json);
  else
    json.Null();
  WriteCriticalPaths(plan, simulated, with_messages, json);
  json.Member("program_note", simulated.program_untraced);
  json.Key("program");
  if (simulated.program_trace)
    view::WriteProgram(*plan.program, *simulated.program_trace, options, json);
  else
    json.Null();
  json.EndObject();
  json.Finish();
  return std::move(out).str();
}

}  // namespace

StatusOr<PlanView> ViewPlan(const Plan& plan, const std::string& name, const ViewOptions& options) {
  Simulated simulated;
  XCCL_ASSIGN_OR_RETURN(simulated.bound, LowerBound(plan.topology, plan.collective, plan.made_by.size_bytes,
                                                    plan.made_by.model));
  XCCL_RETURN_IF_ERROR(SimulateSchedule(plan, options, simulated));
  XCCL_RETURN_IF_ERROR(SimulateProgramOf(plan, options, simulated));
  PlanView view;
  view.name = name;
  view.collective = plan.collective.name();
  view.topology = plan.topology.name();
  view.engine = plan.made_by.engine;
  view.ranks = plan.collective.num_members();
  view.size_bytes = simulated.schedule.size_bytes;
  view.time_ps = simulated.program ? simulated.program->time_ps : simulated.schedule.time_ps;
  view.bound_ps = simulated.bound.bound_ps;
  view.json = view::InScript(PlanJson(plan, simulated, options));
  return view;
}

std::string ViewPage(std::string_view page, const std::vector<PlanView>& plans, const std::string& title,
                     const std::string& command) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject();
  json.Member("format", int64_t{1});
  json.Member("version", std::string(kVersion));
  json.Member("command", command);
  json.Member("title", title);
  json.Key("plans");
  json.BeginArray();
  for (const PlanView& plan : plans) {
    json.BeginObject();
    json.Member("name", plan.name);
    json.Member("serves", plan.serves);
    json.Member("collective", plan.collective);
    json.Member("topology", plan.topology);
    json.Member("ranks", plan.ranks);
    json.Member("engine", plan.engine);
    json.Member("size_bytes", plan.size_bytes);
    json.Member("time_ps", plan.time_ps);
    json.Member("bound_ps", plan.bound_ps);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  json.Finish();
  std::string data = view::InScript(std::move(out).str());
  for (size_t i = 0; i < plans.size(); ++i)
    data += fmt::format("</script>\n<script type=\"application/json\" id=\"plan-{}\">", i) + plans[i].json;
  return view::WithData(page, data);
}

}  // namespace xccl
