// Every engine makes a plan for every size, since it may choose other chunks at another size. The bound is
// found once per size.
#include "pipeline/compare.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "base/units.h"
#include "ir/analysis/schedule_stats.h"
#include "ir/program.h"
#include "ir/simulate/simulate_program.h"
#include "ir/sizes.h"
#include "pipeline/pipeline.h"
#include "synth/engines.h"

namespace xccl {

StatusOr<ComparedEngines> EnginesToCompare(const std::vector<std::string>& wanted,
                                           const Collective& collective) {
  const bool all = std::find(wanted.begin(), wanted.end(), "all") != wanted.end();
  if (!all && !wanted.empty()) {
    for (const std::string& name : wanted) XCCL_RETURN_IF_ERROR(FindEngine(name).status());
    return ComparedEngines{wanted, {}};
  }
  ComparedEngines compared;
  std::vector<std::string> others;
  for (const Engine& engine : AllEngines()) {
    if (engine.searches_long && !all) continue;
    (engine.MayServe(collective.kind()) ? compared.names : others).emplace_back(engine.name);
  }
  if (!others.empty())
    compared.left_out.push_back(fmt::format("{}: not for {}", Join(others, ", "), collective.name()));
  return compared;
}

void LeaveOut(std::string_view name, const Status& why, LeftOut& left_out) {
  const bool proved = why.code() == StatusCode::kInfeasible;
  if (proved || (why.code() == StatusCode::kLimit && left_out.code != StatusCode::kInfeasible))
    left_out.code = why.code();
  if (why.code() == StatusCode::kBug && left_out.code == StatusCode::kInvalidInput)
    left_out.code = StatusCode::kBug;
  const std::string place = fmt::format("{}: ", name);
  std::string line = why.message().starts_with(place) ? why.message() : place + why.message();
  if (std::ranges::find(left_out.lines, line) == left_out.lines.end())
    left_out.lines.push_back(std::move(line));
}

namespace {

// An engine's plan, timed by its program on the machine of the options, or else by its schedule on ideal
// links.
StatusOr<TimedPlan> EngineTime(const std::string& name, const Topology& topology,
                               const Collective& collective, PlanOptions options, LeftOut& left_out) {
  options.engine = name;
  options.lower = options.machine.has_value();
  XCCL_ASSIGN_OR_RETURN(PlanResult result, MakePlan(topology, collective, options));
  for (const std::string& fault : result.faults) LeaveOut(name, BugError(fault), left_out);
  if (options.lower) {
    if (!result.program_time_ps) return LimitReached(name + ": no program: " + result.no_program);
    result.simulation.time_ps = *result.program_time_ps;
  }
  TimedPlan timed = MakeTimedPlan(name, result.plan.made_by.engine, result.plan.collective, result.simulation,
                                  result.bound.bound_ps);
  timed.messages = result.schedule_stats.messages;
  if (result.program_stats) timed.threadblocks = result.program_stats->threadblocks;
  return timed;
}

// A plan that was read, timed as EngineTime does.
StatusOr<TimedPlan> OtherTime(const OtherPlan& other, const PlanOptions& options) {
  const Plan& plan = other.plan;
  const SimulateOptions timing = ProgramTiming(options);
  Simulation simulation;
  if (options.machine) {
    XCCL_ASSIGN_OR_RETURN(
        simulation, SimulateProgram(plan.program->program, plan.program->collective, plan.topology, timing));
  } else {
    simulation = Simulate(plan.schedule, plan.collective, plan.topology, timing);
  }
  TimedPlan timed = MakeTimedPlan(other.name, plan.made_by.engine, plan.collective, simulation,
                                  options.request.bound->bound_ps);
  timed.messages = Stats(plan.schedule, plan.collective, plan.topology).messages;
  if (plan.program) {
    const CollectiveSizes sizes(plan.program->collective, options.request.size_bytes);
    timed.threadblocks = Stats(plan.program->program, sizes).threadblocks;
  }
  return timed;
}

// Adds the times that were measured at the real size of the request.
void AddMeasured(std::span<const MeasuredTimes> measured, const Collective& collective,
                 const PlanOptions& options, std::vector<TimedPlan>& times) {
  const int64_t size = CollectiveSizes(collective, options.request.size_bytes).size_bytes();
  for (const MeasuredTimes& each : measured) {
    const auto found = each.time_ps.find(size);
    if (found == each.time_ps.end()) continue;
    Simulation taken;
    taken.time_ps = found->second;
    taken.size_bytes = size;
    times.push_back(
        MakeTimedPlan(each.name, each.made_by, collective, taken, options.request.bound->bound_ps));
    times.back().measured = true;
  }
}

// All plans and measurements at the size of the options, fastest first. Requires: options with their bound.
std::vector<TimedPlan> TimesAt(const Topology& topology, const Collective& collective,
                               const std::vector<std::string>& engines, std::span<const OtherPlan> others,
                               std::span<const MeasuredTimes> measured, const PlanOptions& options,
                               LeftOut& left_out) {
  std::vector<TimedPlan> times;
  const auto add = [&](const std::string& name, StatusOr<TimedPlan> timed) {
    if (timed.ok())
      times.push_back(*std::move(timed));
    else
      LeaveOut(name, timed.status(), left_out);
  };
  for (const std::string& name : engines)
    add(name, EngineTime(name, topology, collective, options, left_out));
  for (const OtherPlan& other : others) add(other.name, OtherTime(other, options));
  AddMeasured(measured, collective, options, times);
  std::ranges::stable_sort(times, {}, &TimedPlan::time_ps);
  return times;
}

}  // namespace

bool IsTooLate(const Deadline& deadline, int64_t size_bytes, LeftOut& left_out) {
  if (!deadline.IsOver()) return false;
  left_out.lines.push_back(fmt::format("{} and what follows: {}", FormatSize(size_bytes), deadline.Passed()));
  return true;
}

bool IsCutShort(const Deadline& deadline, bool has_rows, int64_t size_bytes, LeftOut& left_out) {
  return has_rows && deadline.IsInterrupted() && IsTooLate(deadline, size_bytes, left_out);
}

Status NothingToCompare(const Compared& on, const LeftOut& left_out, const Deadline& deadline) {
  const std::string text = fmt::format("compare: no engine has a plan for {} on {}: {}", on.collective,
                                       on.topology, Join(left_out.lines, "; "));
  return Status(deadline.IsOver() ? StatusCode::kLimit : left_out.code, text);
}

StatusOr<Comparison> Compare(const Topology& topology, const Collective& collective,
                             const std::vector<std::string>& engines, const std::vector<int64_t>& sizes,
                             const PlanOptions& asked, const OnSize& on_size,
                             std::span<const OtherPlan> others, std::span<const MeasuredTimes> measured) {
  const PlanOptions options = OnMachineOf(topology, asked);
  XCCL_ASSIGN_OR_RETURN(ComparedEngines compared, EnginesToCompare(engines, collective));
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, collective));
  Comparison all;
  LeftOut left_out{.lines = std::move(compared.left_out)};
  all.on = {collective.name(), topology.name(), std::string(ToString(options.request.model))};
  if (options.machine) all.on.machine = options.machine->source;
  all.title = fmt::format("{} on {}: {} rank{}, {} model", all.on.collective, all.on.topology,
                          collective.num_members(), collective.num_members() == 1 ? "" : "s", all.on.model);
  for (const MeasuredTimes& each : measured) all.notes.push_back(each.note);
  Comparison of_size{.title = all.title, .on = all.on, .times = {}, .left_out = {}, .notes = all.notes};
  PlanOptions at_size = options;
  for (const int64_t size : sizes) {
    if (IsTooLate(options.deadline, size, left_out)) break;
    at_size.request.size_bytes = size;
    XCCL_ASSIGN_OR_RETURN(const Bound bound, LowerBound(topology, collective, size, options.request.model));
    at_size.request.bound = &bound;
    of_size.times = TimesAt(topology, collective, compared.names, others, measured, at_size, left_out);
    if (IsCutShort(options.deadline, !all.times.empty(), size, left_out)) break;
    all.times.insert(all.times.end(), of_size.times.begin(), of_size.times.end());
    if (on_size && !of_size.times.empty()) XCCL_RETURN_IF_ERROR(on_size(of_size));
  }
  if (all.times.empty()) return NothingToCompare(all.on, left_out, options.deadline);
  all.left_out = std::move(left_out.lines);
  return all;
}

}  // namespace xccl
