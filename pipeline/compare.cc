// Every engine makes a plan for every size, since it may choose other chunks at another size. The bound is
// found once per size.
#include "pipeline/compare.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "base/units.h"
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

void LeaveOut(std::string_view name, const Status& why, std::vector<std::string>& left_out) {
  const std::string place = fmt::format("{}: ", name);
  std::string line = why.message().starts_with(place) ? why.message() : place + why.message();
  if (std::find(left_out.begin(), left_out.end(), line) == left_out.end())
    left_out.push_back(std::move(line));
}

StatusOr<Comparison> Compare(const Topology& topology, const Collective& collective,
                             const std::vector<std::string>& engines, const std::vector<int64_t>& sizes,
                             const PlanOptions& options) {
  XCCL_ASSIGN_OR_RETURN(ComparedEngines compared, EnginesToCompare(engines, collective));
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, collective));
  Comparison comparison;
  comparison.left_out = std::move(compared.left_out);
  comparison.title = fmt::format("{} on {}: {} ranks, {} model", collective.name(), topology.name(),
                                 collective.num_members(), ToString(options.request.model));
  PlanOptions at_size = options;
  for (int64_t size : sizes) {
    at_size.request.size_bytes = size;
    XCCL_ASSIGN_OR_RETURN(const Bound bound, LowerBound(topology, collective, size, options.request.model));
    const SynthesisRequest request = RequestOf(topology, collective, at_size, &bound);
    std::vector<TimedPlan> times;
    for (const std::string& name : compared.names) {
      XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine(name));
      const StatusOr<Synthesis> made = engine->Synthesize(request);
      if (!made.ok()) {
        LeaveOut(name, made.status(), comparison.left_out);
        continue;
      }
      const StatusOr<Simulation> simulation = ProvedTime(*made, request, options.deadline);
      if (simulation.status().code() == StatusCode::kLimit) {
        LeaveOut(name, simulation.status(), comparison.left_out);
        continue;
      }
      XCCL_RETURN_IF_ERROR(simulation.status());
      times.push_back(MakeTimedPlan(name, made->engine, made->collective, *simulation, bound.bound_ps));
    }
    std::ranges::stable_sort(times, {}, &TimedPlan::time_ps);
    comparison.times.insert(comparison.times.end(), times.begin(), times.end());
  }
  return comparison;
}

}  // namespace xccl
