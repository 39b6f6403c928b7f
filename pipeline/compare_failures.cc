#include "pipeline/compare_failures.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "pipeline/pipeline.h"
#include "synth/engines.h"
#include "synth/replan/replan.h"
#include "topologies/failures.h"

namespace xccl {
namespace {

// A machine, and the options for its plans. The options contain the bound on this machine.
struct Machine {
  const Topology* topology;
  PlanOptions options;
};

// Makes the engine's plan for a machine. Adds the error and the engine's faults, if any, to `skipped`.
StatusOr<PlanResult> PlanOn(const Machine& machine, const Engine& engine, const Collective& collective,
                            Skipped& skipped) {
  PlanOptions options = machine.options;
  options.engine = engine.name;
  StatusOr<PlanResult> result = MakePlanBy(engine, *machine.topology, collective, options);
  if (!result.ok()) {
    Skip(engine.name, result.status(), skipped);
    return result;
  }
  for (const std::string& fault : result->faults) Skip(engine.name, BugError(fault), skipped);
  return result;
}

// Plans every draw with one engine. Adds a row to `times` if at least one draw has a plan.
void AddTimes(const Engine& engine, std::optional<double> whole_us, std::span<const Machine> draws,
              const Collective& collective, std::vector<FailureTimes>& times, Skipped& skipped) {
  FailureTimes row{
      .engine = std::string(engine.name), .draws = static_cast<int32_t>(draws.size()), .whole_us = whole_us};
  for (const Machine& draw : draws) {
    const StatusOr<PlanResult> result = PlanOn(draw, engine, collective, skipped);
    row.draw_us.emplace_back();
    if (!result.ok()) continue;
    row.size_bytes = result->simulation.size_bytes;
    ++row.planned;
    row.draw_us.back() = PsToUs(result->simulation.time_ps);
    row.mean_us += PsToUs(result->simulation.time_ps);
    row.bound_us += PsToUs(result->bound.bound_ps);
    row.mean_ratio += result->ratio;
    row.worst_ratio = std::max(row.worst_ratio, result->ratio);
    row.synthesis_s += result->synthesis_s;
  }
  if (row.planned == 0) return;
  for (double* mean : {&row.mean_us, &row.bound_us, &row.mean_ratio, &row.synthesis_s}) *mean /= row.planned;
  times.push_back(row);
}

// Returns an engine that repairs the plan `from` for the machine of each request.
Engine RepairOf(const Plan& from) {
  return {.name = kReplan,
          .summary = "",
          .serves = [](const SynthesisRequest&) { return OkStatus(); },
          .make = [&from](const SynthesisRequest& request) { return Replan(from, request); }};
}

// Returns the rows of one size. The first machine has no failures; all other machines are draws.
StatusOr<std::vector<FailureTimes>> TimesAt(std::span<const Machine> machines,
                                            const std::vector<std::string>& engines,
                                            const Collective& collective, Skipped& skipped) {
  const Machine& whole = machines.front();
  const std::span<const Machine> draws = machines.subspan(1);
  Skipped of_whole;  // not reported: an engine without a plan for the whole machine gets an empty cell
  const StatusOr<PlanResult> start = PlanOn(whole, DefaultEngine(), collective, of_whole);
  const auto time_us = [](const StatusOr<PlanResult>& result) -> std::optional<double> {
    return result.ok() ? std::optional(PsToUs(result->simulation.time_ps)) : std::nullopt;
  };
  std::vector<FailureTimes> times;
  for (const std::string& name : engines) {
    XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine(name));
    const std::optional<double> whole_us =
        engine == &DefaultEngine() ? time_us(start) : time_us(PlanOn(whole, *engine, collective, of_whole));
    AddTimes(*engine, whole_us, draws, collective, times, skipped);
  }
  if (start.ok()) {
    AddTimes(RepairOf(start->plan), time_us(start), draws, collective, times, skipped);
  } else {
    Skip(kReplan, start.status(), skipped);
  }
  std::ranges::stable_sort(times, {},
                           [](const FailureTimes& row) { return std::pair(-row.planned, row.mean_us); });
  return times;
}

}  // namespace

StatusOr<FailureComparison> CompareFailures(const Topology& topology, const Collective& collective,
                                            const std::vector<std::string>& engines,
                                            const std::vector<int64_t>& sizes, const PlanOptions& options,
                                            const FailureOptions& failures) {
  XCCL_ASSIGN_OR_RETURN(ComparedEngines compared, EnginesToCompare(engines, collective));
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, collective));
  FailureComparison comparison;
  comparison.on = {collective.name(), topology.name(), std::string(ToString(options.request.model))};
  XCCL_ASSIGN_OR_RETURN(
      std::vector<Failure> drawn,
      FailCablesOften(topology, failures.cables, failures.draws, options.request.seed,
                      [&](const Topology& left) { return CheckReachable(left, collective).ok(); }));
  comparison.title =
      fmt::format("{} on {} with {} of its cables failed, {}: {} ranks, {} model", collective.name(),
                  topology.name(), failures.cables, Counted(std::ssize(drawn), "draw"),
                  collective.num_members(), ToString(options.request.model));
  if (std::ssize(drawn) < failures.draws)
    comparison.fewer = fmt::format("{} of {} draws: no other failure leaves all ranks within reach",
                                   drawn.size(), failures.draws);
  Skipped skipped{.lines = std::move(compared.skipped)};
  std::vector<Topology> machines = {topology};
  for (Failure& failure : drawn) {
    comparison.failed.push_back(Join(failure.cables, ", "));
    machines.push_back(std::move(failure.topology));
  }
  PlanOptions at_size = options;
  at_size.lower = false;  // schedules are compared, on ideal links
  for (const int64_t size : sizes) {
    if (IsTooLate(options.deadline, size, skipped)) break;
    at_size.request.size_bytes = size;
    std::vector<Bound> bounds(machines.size());
    std::vector<Machine> planned_on;
    for (size_t i = 0; i < machines.size(); ++i) {
      XCCL_ASSIGN_OR_RETURN(bounds[i], LowerBound(machines[i], collective, size, options.request.model));
      planned_on.push_back({&machines[i], at_size});
      planned_on.back().options.request.bound = &bounds[i];
    }
    XCCL_ASSIGN_OR_RETURN(const std::vector<FailureTimes> times,
                          TimesAt(planned_on, compared.names, collective, skipped));
    if (IsCutShort(options.deadline, !comparison.times.empty(), size, skipped)) break;
    comparison.times.insert(comparison.times.end(), times.begin(), times.end());
    FailureBounds& bound = comparison.bounds.emplace_back();
    bound.size_bytes = bounds[0].size_bytes;
    bound.whole_us = PsToUs(bounds[0].bound_ps);
    for (size_t i = 1; i < bounds.size(); ++i) bound.draw_us.push_back(PsToUs(bounds[i].bound_ps));
  }
  if (comparison.times.empty()) return NothingToCompare(comparison.on, skipped, options.deadline);
  comparison.skipped = std::move(skipped.lines);
  return comparison;
}

}  // namespace xccl
