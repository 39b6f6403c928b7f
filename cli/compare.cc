// Every engine makes a plan for every size (an engine may choose other chunks at another size); the bound is
// found once a size.
#include "cli/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "base/units.h"
#include "synth/engines.h"

namespace xccl {

StatusOr<ComparedEngines> EnginesToCompare(const std::vector<std::string>& wanted,
                                           const Collective& collective) {
  ComparedEngines compared;
  const bool all = std::find(wanted.begin(), wanted.end(), "all") != wanted.end();
  if (!all && !wanted.empty()) {
    for (const std::string& name : wanted) {
      XCCL_RETURN_IF_ERROR(FindSynthesizer(name).status());
      compared.names.push_back(name);
    }
    return compared;
  }
  std::vector<std::string> others;
  for (const auto& engine : AllSynthesizers()) {
    if (engine->name() == "smt" && !all) continue;
    (engine->MayServe(collective.kind()) ? compared.names : others).emplace_back(engine->name());
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
                             const PipelineOptions& options) {
  XCCL_ASSIGN_OR_RETURN(ComparedEngines compared, EnginesToCompare(engines, collective));
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, collective));
  Comparison comparison;
  comparison.left_out = std::move(compared.left_out);
  comparison.title = fmt::format("{} on {}: {} ranks, {} model", collective.name(), topology.name(),
                                 collective.num_members(), ToString(options.model));
  for (int64_t size : sizes) {
    std::vector<TimedPlan> times;
    XCCL_ASSIGN_OR_RETURN(const Bound bound, LowerBound(topology, collective, size, options.model));
    for (const std::string& name : compared.names) {
      XCCL_ASSIGN_OR_RETURN(const Synthesizer* const engine, FindSynthesizer(name));
      const StatusOr<Synthesis> made = engine->Synthesize({.topology = &topology,
                                                           .collective = &collective,
                                                           .size_bytes = size,
                                                           .model = options.model,
                                                           .limits = options.limits,
                                                           .seed = options.seed,
                                                           .allow_divergent = options.allow_divergent});
      if (!made.ok()) {
        LeaveOut(name, made.status(), comparison.left_out);
        continue;
      }
      XCCL_RETURN_IF_ERROR(CheckMade(*made, topology));
      const Simulation simulation =
          Simulate(made->schedule, made->collective, topology, {.size_bytes = size, .model = options.model});
      times.push_back(MakeTimedPlan(name, made->engine, made->collective, simulation, bound.bound_ps));
    }
    std::stable_sort(times.begin(), times.end(),
                     [](const TimedPlan& a, const TimedPlan& b) { return a.time_ps < b.time_ps; });
    comparison.times.insert(comparison.times.end(), times.begin(), times.end());
  }
  return comparison;
}

std::string CompareText(const Comparison& comparison) {
  std::vector<std::vector<std::string>> table = {
      {"size", "engine", "time us", "algbw GB/s", "busbw GB/s", "time/bound"}};
  int64_t last = -1;
  for (const TimedPlan& timed : comparison.times) {
    table.push_back(
        {timed.size_bytes == last ? "" : FormatSize(timed.size_bytes), ShownName(timed),
         fmt::format("{:.3f}", PsToUs(timed.time_ps)), fmt::format("{:.2f}", GbPerS(timed.algbw_bytes_per_s)),
         fmt::format("{:.2f}", GbPerS(timed.busbw_bytes_per_s)), fmt::format("{:.4f}", timed.ratio)});
    last = timed.size_bytes;
  }
  std::string text = comparison.title + "\n" + TableText(table);
  for (const std::string& reason : comparison.left_out) text += "left out: " + reason + "\n";
  return text;
}

std::string CompareCsv(const Comparison& comparison) {
  std::string text = "engine,size_bytes,time_us,algbw_gb_per_s,busbw_gb_per_s,bound_us,ratio\n";
  for (const TimedPlan& timed : comparison.times)
    text += fmt::format("{},{},{},{},{},{},{}\n", timed.engine, timed.size_bytes, PsToUs(timed.time_ps),
                        GbPerS(timed.algbw_bytes_per_s), GbPerS(timed.busbw_bytes_per_s),
                        PsToUs(timed.bound_ps), timed.ratio);
  return text;
}

}  // namespace xccl
