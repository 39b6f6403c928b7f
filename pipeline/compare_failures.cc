#include "pipeline/compare_failures.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <span>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "synth/engines.h"
#include "synth/replan/replan.h"
#include "topologies/failures.h"

namespace xccl {
namespace {

// Plans every draw in one manner, and adds a row unless no draw has a plan.
void AddTimes(const std::string& name, std::optional<double> whole_us,
              std::span<const SynthesisRequest> draws,
              const std::function<StatusOr<Synthesis>(const SynthesisRequest&)>& make,
              const Deadline& deadline, std::vector<FailureTimes>& times, LeftOut& left_out) {
  FailureTimes row{.engine = name, .draws = static_cast<int32_t>(draws.size()), .whole_us = whole_us};
  for (const SynthesisRequest& request : draws) {
    const auto start = std::chrono::steady_clock::now();
    const StatusOr<Synthesis> made = make(request);
    row.draw_us.emplace_back();
    if (!made.ok()) {
      LeaveOut(name, made.status(), left_out);
      continue;
    }
    row.synthesis_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const StatusOr<Simulation> simulation = ProvedTime(*made, request, deadline);
    if (!simulation.ok()) {
      LeaveOut(name, simulation.status(), left_out);
      continue;
    }
    const double ratio = RatioOf(simulation->time_ps, request.bound->bound_ps);
    row.size_bytes = simulation->size_bytes;
    ++row.planned;
    row.draw_us.back() = PsToUs(simulation->time_ps);
    row.mean_us += PsToUs(simulation->time_ps);
    row.bound_us += PsToUs(request.bound->bound_ps);
    row.mean_ratio += ratio;
    row.worst_ratio = std::max(row.worst_ratio, ratio);
  }
  if (row.planned == 0) return;
  for (double* mean : {&row.mean_us, &row.bound_us, &row.mean_ratio, &row.synthesis_s}) *mean /= row.planned;
  times.push_back(row);
}

// The rows of one size. The first request is for the machine without failures, the others for the draws.
StatusOr<std::vector<FailureTimes>> TimesAt(std::span<const SynthesisRequest> requests,
                                            const std::vector<std::string>& engines, const Deadline& deadline,
                                            LeftOut& left_out) {
  const SynthesisRequest& whole = requests.front();
  const std::span<const SynthesisRequest> draws = requests.subspan(1);
  const StatusOr<Synthesis> start = DefaultEngine().Synthesize(whole);  // what replan repairs
  const auto time_us = [&](const StatusOr<Synthesis>& made) -> std::optional<double> {
    if (!made.ok()) return std::nullopt;
    const StatusOr<Simulation> simulation = ProvedTime(*made, whole, deadline);
    return simulation.ok() ? std::optional(PsToUs(simulation->time_ps)) : std::nullopt;
  };
  const std::optional<double> start_us = time_us(start);
  std::vector<FailureTimes> times;
  for (const std::string& name : engines) {
    XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine(name));
    std::optional<double> whole_us = start_us;
    if (engine != &DefaultEngine()) whole_us = time_us(engine->Synthesize(whole));
    const auto make = [&](const SynthesisRequest& request) { return engine->Synthesize(request); };
    AddTimes(name, whole_us, draws, make, deadline, times, left_out);
  }
  if (start_us) {
    Plan from{*whole.topology, start->collective, start->schedule, std::nullopt, {}};
    from.made_by.engine = start->engine;
    const auto make = [&](const SynthesisRequest& request) { return Replan(from, request); };
    AddTimes(kReplan, start_us, draws, make, deadline, times, left_out);
  } else {
    LeaveOut(kReplan, start.ok() ? ProvedTime(*start, whole, deadline).status() : start.status(), left_out);
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
  comparison.title = fmt::format("{} on {} with {} of its cables failed, {} draws: {} ranks, {} model",
                                 collective.name(), topology.name(), failures.cables, failures.draws,
                                 collective.num_members(), ToString(options.request.model));
  LeftOut left_out{.lines = std::move(compared.left_out)};
  std::vector<Topology> machines = {topology};
  for (int32_t i = 0; i < failures.draws; ++i) {
    XCCL_ASSIGN_OR_RETURN(
        Failure failure,
        FailCables(topology, failures.cables, options.request.seed + static_cast<uint64_t>(i),
                   [&](const Topology& left) { return CheckReachable(left, collective).ok(); }));
    comparison.failed.push_back(Join(failure.cables, ", "));
    machines.push_back(std::move(failure.topology));
  }
  PlanOptions at_size = options;
  for (const int64_t size : sizes) {
    if (IsTooLate(options.deadline, size, left_out)) break;
    at_size.request.size_bytes = size;
    std::vector<Bound> bounds(machines.size());
    std::vector<SynthesisRequest> requests;
    for (size_t i = 0; i < machines.size(); ++i) {
      XCCL_ASSIGN_OR_RETURN(bounds[i], LowerBound(machines[i], collective, size, options.request.model));
      requests.push_back(RequestOf(machines[i], collective, at_size, &bounds[i]));
    }
    XCCL_ASSIGN_OR_RETURN(const std::vector<FailureTimes> times,
                          TimesAt(requests, compared.names, options.deadline, left_out));
    if (IsCutShort(options.deadline, !comparison.times.empty(), size, left_out)) break;
    comparison.times.insert(comparison.times.end(), times.begin(), times.end());
    FailureBounds& bound = comparison.bounds.emplace_back();
    bound.size_bytes = bounds[0].size_bytes;
    bound.whole_us = PsToUs(bounds[0].bound_ps);
    for (size_t i = 1; i < bounds.size(); ++i) bound.draw_us.push_back(PsToUs(bounds[i].bound_ps));
  }
  if (comparison.times.empty()) return NothingToCompare(comparison.on, left_out, options.deadline);
  comparison.left_out = std::move(left_out.lines);
  return comparison;
}

}  // namespace xccl
