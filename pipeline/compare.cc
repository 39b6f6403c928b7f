// 1. Choose the engines.
// 2. For every size, compute the bound once.
// 3. Let every engine make a plan for this size, because an engine may choose other chunks at another size.
//    An engine without a plan is recorded in `skipped` with the reason.
// 4. Say how auto's plan differs from its engine's own plan, and why auto kept it.
// 5. Time the other plans at this size, and add the measured times of this size.
// 6. Sort the rows of this size by time and pass them to `on_size`.
#include "pipeline/compare.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/size_range.h"
#include "base/strings.h"
#include "ir/analysis/schedule_stats.h"
#include "ir/known_machines.h"
#include "ir/program.h"
#include "ir/simulate/simulate_program.h"
#include "ir/sizes.h"
#include "pipeline/pipeline.h"
#include "synth/common/why_chosen.h"
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
    compared.skipped.push_back(fmt::format("{}: not for {}", Join(others, ", "), collective.name()));
  return compared;
}

void Skip(std::string_view name, const Status& why, Skipped& skipped) {
  const bool proved = why.code() == StatusCode::kInfeasible;
  if (proved || (why.code() == StatusCode::kLimit && skipped.code != StatusCode::kInfeasible))
    skipped.code = why.code();
  if (why.code() == StatusCode::kBug && skipped.code == StatusCode::kInvalidInput)
    skipped.code = StatusCode::kBug;
  const std::string place = fmt::format("{}: ", name);
  std::string line = why.message().starts_with(place) ? why.message() : place + why.message();
  if (std::ranges::find(skipped.lines, line) == skipped.lines.end()) skipped.lines.push_back(std::move(line));
}

namespace {

// Returns the time of the engine's plan. If the options have a machine model, the time is that of the plan's
// program on this model; otherwise it is that of the schedule on ideal links.
StatusOr<PlanTime> EngineTime(const std::string& name, const Topology& topology, const Collective& collective,
                              PlanOptions options, Skipped& skipped) {
  options.engine = name;
  options.lower = options.machine.has_value();
  XCCL_ASSIGN_OR_RETURN(PlanResult result, MakePlan(topology, collective, options));
  for (const std::string& fault : result.faults) Skip(name, BugError(fault), skipped);
  if (options.lower) {
    if (!result.program_time_ps) return LimitReached(name + ": no program: " + result.no_program);
    result.simulation.time_ps = *result.program_time_ps;
  }
  PlanTime timed = MakePlanTime(name, result.plan.made_by.engine, result.plan.collective, result.simulation,
                                result.bound.bound_ps);
  timed.messages = result.schedule_stats.messages;
  timed.num_chunks = result.plan.collective.num_chunks();
  timed.note = result.note;
  if (result.program_stats) timed.threadblocks = result.program_stats->threadblocks;
  return timed;
}

// Returns the time of a plan that was read from a file. Programs and schedules are timed as in EngineTime.
StatusOr<PlanTime> OtherTime(const OtherPlan& other, const PlanOptions& options) {
  const Plan& plan = other.plan;
  const SimulateOptions timing = ProgramTiming(options);
  Simulation simulation;
  if (options.machine) {
    XCCL_ASSIGN_OR_RETURN(
        simulation, SimulateProgram(plan.program->program, plan.program->collective, plan.topology, timing));
  } else {
    simulation = Simulate(plan.schedule, plan.collective, plan.topology, timing);
  }
  PlanTime timed = MakePlanTime(other.name, plan.made_by.engine, plan.collective, simulation,
                                options.request.bound->bound_ps);
  timed.messages = Stats(plan.schedule, plan.collective, plan.topology).messages;
  if (plan.program) {
    const CollectiveSizes sizes(plan.program->collective, options.request.size_bytes);
    timed.threadblocks = Stats(plan.program->program, sizes).threadblocks;
  }
  return timed;
}

// Adds the times that were measured at the request's size, after the collective has rounded this size.
void AddMeasured(std::span<const MeasuredTimes> measured, const Collective& collective,
                 const PlanOptions& options, std::vector<PlanTime>& times) {
  const int64_t size = CollectiveSizes(collective, options.request.size_bytes).size_bytes();
  for (const MeasuredTimes& each : measured) {
    const auto found = each.time_ps.find(size);
    if (found == each.time_ps.end()) continue;
    Simulation taken;
    taken.time_ps = found->second;
    taken.size_bytes = size;
    times.push_back(
        MakePlanTime(each.name, each.made_by, collective, taken, options.request.bound->bound_ps));
    times.back().measured = true;
    if (const auto calls = each.calls.find(size); calls != each.calls.end()) {
      times.back().variation = Counted(calls->second, "call");
      times.back().note = times.back().variation + " in a job";
    }
  }
}

// Returns a number of messages in at most five characters: "28", "0.12M", "1.05M".
std::string MessagesText(int64_t messages) {
  if (messages < 100'000) return fmt::format("{}", messages);
  const double millions = static_cast<double>(messages) / 1e6;
  return messages < 995'000 ? fmt::format("{:.2f}M", millions) : fmt::format("{:.3g}M", millions);
}

// Returns how a plan that auto kept differs from `own`, the row of the engine that made it. `own` is null if
// this engine has no row. The text is then "varied" if the engine is compared (`is_asked`), otherwise the
// number of messages.
std::string VariationOf(const PlanTime& kept, const PlanTime* own, bool is_asked) {
  if (kept.made_by == kNoEngine) return "";
  if (own == nullptr) return is_asked ? "varied" : MessagesText(*kept.messages) + " messages";
  if (*kept.num_chunks != *own->num_chunks) return *kept.num_chunks > *own->num_chunks ? "finer" : "coarser";
  return kept.time_ps == own->time_ps && kept.messages == own->messages ? "" : "reordered";
}

// Sets the variation and the note of plans that an engine chose among those of other engines. Clears the
// notes of all other rows. The rows are those of `engines`.
void SayWhyChosen(const std::vector<std::string>& engines, const std::string& what,
                  std::vector<PlanTime>& times) {
  std::vector<Contender> others;
  for (const PlanTime& timed : times)
    if (timed.engine == timed.made_by) others.push_back({timed.engine, timed.time_ps, timed.messages});
  for (PlanTime& timed : times) {
    if (timed.engine == timed.made_by) {
      timed.note.clear();
      continue;
    }
    const auto own = std::ranges::find(times, timed.made_by, &PlanTime::engine);
    const bool is_asked = std::ranges::find(engines, timed.made_by) != engines.end();
    timed.variation = VariationOf(timed, own == times.end() ? nullptr : &*own, is_asked);
    // The plan's own note holds, unless an engine that is compared has a faster plan.
    std::string why = WhyChosen({timed.made_by, timed.time_ps, timed.messages}, others, others.size(), what);
    if (why.find(" % faster") != std::string::npos) timed.note = std::move(why);
  }
}

// Returns the rows of all plans and measurements at the size of the options, by time. Requires a bound.
std::vector<PlanTime> TimesAt(const Topology& topology, const Collective& collective,
                              const std::vector<std::string>& engines, std::span<const OtherPlan> others,
                              std::span<const MeasuredTimes> measured, const PlanOptions& options,
                              Skipped& skipped) {
  std::vector<PlanTime> times;
  const auto add = [&](const std::string& name, StatusOr<PlanTime> timed) {
    if (timed.ok())
      times.push_back(*std::move(timed));
    else
      Skip(name, timed.status(), skipped);
  };
  for (const std::string& name : engines) add(name, EngineTime(name, topology, collective, options, skipped));
  SayWhyChosen(engines, options.machine ? "program" : "", times);
  for (const OtherPlan& other : others) add(other.name, OtherTime(other, options));
  AddMeasured(measured, collective, options, times);
  for (PlanTime& timed : times) timed.asked_bytes = options.request.size_bytes;
  std::ranges::stable_sort(times, {}, &PlanTime::time_ps);
  return times;
}

}  // namespace

std::string NameOfRow(const PlanTime& timed) {
  if (timed.engine == timed.made_by) return timed.engine;
  return fmt::format("{} ({}{}{})", timed.engine, timed.made_by, timed.variation.empty() ? "" : ", ",
                     timed.variation);
}

size_t LongestNameOf(const std::vector<std::string>& engines, CollectiveKind kind) {
  PlanTime longest, of_asked;
  for (const Engine& engine : AllEngines()) {
    if (engine.asks_others || engine.searches_long || !engine.MayServe(kind)) continue;
    const bool is_asked = std::ranges::find(engines, engine.name) != engines.end();
    std::string& name = is_asked ? of_asked.made_by : longest.made_by;
    if (engine.name.size() > name.size()) name = engine.name;
  }
  longest.variation = longest.made_by.empty() ? "" : MessagesText(99'999) + " messages";
  of_asked.variation = "reordered";
  size_t most = 0;
  for (const std::string& name : engines) {
    const StatusOr<const Engine*> engine = FindEngine(name);
    most = std::max(most, name.size());
    if (!engine.ok() || !(*engine)->asks_others) continue;
    for (PlanTime* row : {&longest, &of_asked}) {
      row->engine = name;
      most = std::max(most, NameOfRow(*row).size());
    }
  }
  return most;
}

size_t LongestSizeOf(const std::vector<int64_t>& sizes) {
  size_t most = 0;
  for (const int64_t size : sizes) most = std::max(most, SizeText(size).size());
  return most;
}

bool IsTooLate(const Deadline& deadline, int64_t size_bytes, Skipped& skipped) {
  if (!deadline.IsOver()) return false;
  skipped.lines.push_back(fmt::format("{} and what follows: {}", SizeText(size_bytes), deadline.Passed()));
  return true;
}

bool IsCutShort(const Deadline& deadline, bool has_rows, int64_t size_bytes, Skipped& skipped) {
  return has_rows && deadline.IsInterrupted() && IsTooLate(deadline, size_bytes, skipped);
}

Status NothingToCompare(const Compared& on, const Skipped& skipped, const Deadline& deadline) {
  const std::string text = fmt::format("compare: no engine has a plan for {} on {}: {}", on.collective,
                                       on.topology, Join(skipped.lines, "; "));
  return Status(deadline.IsOver() ? StatusCode::kLimit : skipped.code, text);
}

StatusOr<Comparison> Compare(const Topology& topology, const Collective& collective,
                             const std::vector<std::string>& engines, const std::vector<int64_t>& sizes,
                             const PlanOptions& asked, const OnSize& on_size,
                             std::span<const OtherPlan> others, std::span<const MeasuredTimes> measured) {
  const PlanOptions options = OnMachineOf(topology, asked);
  XCCL_ASSIGN_OR_RETURN(ComparedEngines compared, EnginesToCompare(engines, collective));
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, collective));
  Comparison all;
  Skipped skipped{.lines = std::move(compared.skipped)};
  all.on = {collective.name(), topology.name(), std::string(ToString(options.request.model))};
  if (options.machine) all.on.machine = options.machine->source;
  all.title = fmt::format("{} on {}: {} rank{}, {} model", all.on.collective, all.on.topology,
                          collective.num_members(), collective.num_members() == 1 ? "" : "s", all.on.model);
  const std::string no_machine =
      asked.machine_of_topology && !options.machine ? WhyNoModel(topology.gpu_arch()) : "";
  if (!no_machine.empty()) all.notes.push_back(no_machine);
  for (const MeasuredTimes& each : measured) all.notes.push_back(each.note);
  all.longest_name = LongestNameOf(compared.names, collective.kind());
  all.longest_size = LongestSizeOf(sizes);
  for (const OtherPlan& other : others) {
    PlanTime row;
    row.engine = other.name, row.made_by = other.plan.made_by.engine;
    all.longest_name = std::max(all.longest_name, NameOfRow(row).size());
  }
  for (const MeasuredTimes& each : measured) {
    PlanTime row;
    row.engine = each.name, row.made_by = each.made_by;
    all.longest_name = std::max(all.longest_name, NameOfRow(row).size());
    for (const auto& [size, calls] : each.calls) {
      row.variation = Counted(calls, "call");
      all.longest_name = std::max(all.longest_name, NameOfRow(row).size());
    }
  }
  Comparison of_size = all;
  PlanOptions at_size = options;
  for (const int64_t size : sizes) {
    if (IsTooLate(options.deadline, size, skipped)) break;
    at_size.request.size_bytes = size;
    XCCL_ASSIGN_OR_RETURN(const Bound bound, LowerBound(topology, collective, size, options.request.model));
    at_size.request.bound = &bound;
    of_size.times = TimesAt(topology, collective, compared.names, others, measured, at_size, skipped);
    if (IsCutShort(options.deadline, !all.times.empty(), size, skipped)) break;
    all.times.insert(all.times.end(), of_size.times.begin(), of_size.times.end());
    if (on_size && !of_size.times.empty()) XCCL_RETURN_IF_ERROR(on_size(of_size));
  }
  if (all.times.empty()) return NothingToCompare(all.on, skipped, options.deadline);
  all.skipped = std::move(skipped.lines);
  return all;
}

}  // namespace xccl
