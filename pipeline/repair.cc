#include "pipeline/repair.h"

#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/units.h"
#include "ir/tolerance.h"
#include "pipeline/pipeline.h"
#include "pipeline/search.h"
#include "synth/engines.h"
#include "synth/replan/replan.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

// If a repaired plan takes at most this times the bound, no fresh plan is made, because it could gain little.
constexpr double kMaxRatioToBound = 1.05;

std::string ThenNote(std::string first, const std::string& note) {
  return note.empty() ? std::move(first) : std::move(first) + "; " + note;
}

// Returns the repaired plan, or the reason why the plan cannot be repaired.
StatusOr<Synthesis> Repaired(const Plan& from, const SynthesisRequest& request) {
  if (request.IsPassedOver(kReplan)) return BugError("the repaired plan was wrong");
  return Replan(from, request);
}

// Chooses one of two simulated plans, and adds a note about the other plan. The repaired plan is chosen even
// if it takes up to 2 % longer, because it changes less of the plan that is in use.
Synthesis BetterOf(Synthesis repaired, Synthesis fresh) {
  const int64_t repaired_ps = repaired.simulation->time_ps, fresh_ps = fresh.simulation->time_ps;
  if (IsWithinTolerance(repaired_ps, fresh_ps)) {
    repaired.faults.insert(repaired.faults.end(), fresh.faults.begin(), fresh.faults.end());
    repaired.note += fmt::format("; a fresh plan, {}, takes {}", fresh.engine, FormatDurationShort(fresh_ps));
    return repaired;
  }
  fresh.note = ThenNote(fmt::format("planned anew: {} in place of {} for the repaired plan",
                                    FormatDurationShort(fresh_ps), FormatDurationShort(repaired_ps)),
                        fresh.note);
  return fresh;
}

// Returns the repaired plan, or the engine's fresh plan if the repair fails or BetterOf chooses the fresh
// plan. A repaired plan near the bound (kMaxRatioToBound) is returned at once.
StatusOr<Synthesis> RepairedOrFresh(const Plan& from, const SynthesisRequest& request, const Engine& engine) {
  const Deadline& deadline = request.limits.deadline;
  StatusOr<Synthesis> repaired = Repaired(from, request);
  if (repaired.ok()) {
    XCCL_ASSIGN_OR_RETURN(const Bound bound, BoundOf(request));
    XCCL_ASSIGN_OR_RETURN(repaired->simulation, SimulationOf(*repaired, request, deadline));
    const auto time_ps = static_cast<double>(repaired->simulation->time_ps);
    if (time_ps <= kMaxRatioToBound * static_cast<double>(bound.bound_ps)) return repaired;
    if (deadline.IsOver()) {
      repaired->note += "; no time was left to try a fresh plan";
      return repaired;
    }
  }
  StatusOr<Synthesis> fresh = engine.Synthesize(request);
  if (!repaired.ok()) {
    if (fresh.ok()) fresh->note = ThenNote("planned anew: " + repaired.status().message(), fresh->note);
    return fresh;
  }
  const StatusOr<Simulation> simulated =
      fresh.ok() ? SimulationOf(*fresh, request, deadline) : StatusOr<Simulation>(fresh.status());
  if (!simulated.ok()) {
    repaired->note += "; no fresh plan was found";
    return repaired;
  }
  fresh->simulation = *simulated;
  return BetterOf(*std::move(repaired), *std::move(fresh));
}

// Lets the improving engine (greedy) make the plan faster. Returns the plan unchanged if the engine finds no
// faster one or is passed over.
StatusOr<Synthesis> Improved(const Plan& from, const std::string& place, SynthesisRequest request) {
  const Engine& engine = ImprovingEngine();
  const auto start = std::make_shared<const Synthesis>(Synthesis{
      .collective = from.collective, .schedule = from.schedule, .engine = from.made_by.engine, .note = ""});
  if (request.IsPassedOver(engine.name)) return *start;
  request.start = start;
  StatusOr<Synthesis> improved = engine.Synthesize(request);
  if (!improved.ok() || improved->schedule != from.schedule) return improved;
  improved->engine = from.made_by.engine;
  improved->note = "as in " + place + ", which " + std::string(engine.name) + " did not make faster";
  return improved;
}

}  // namespace

StatusOr<PlanResult> RepairPlan(const Plan& from, const std::string& place, const Topology& topology,
                                const Collective& collective, const PlanOptions& asked) {
  if (from.collective.kind() != collective.kind() || from.collective.name() != collective.name())
    return InvalidInput(place + ": a plan for " + from.collective.name() + "; expected " + collective.name());
  const bool same_machine = from.collective.spec() == collective.spec() &&
                            WriteNativeXml(from.topology) == WriteNativeXml(topology);
  XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine(asked.engine));
  const PlanOptions options = OnMachineOf(topology, asked);
  Search search(topology, collective, options);
  XCCL_RETURN_IF_ERROR(search.Begin());
  while (true) {
    // Search as in MakePlanBy, but start from the plan.
    XCCL_ASSIGN_OR_RETURN(Synthesis made, same_machine ? Improved(from, place, search.request())
                                                       : RepairedOrFresh(from, search.request(), *engine));
    XCCL_ASSIGN_OR_RETURN(std::vector<Synthesis> found, search.Simulated(std::move(made)));
    StatusOr<PlanResult> result =
        RunGuarded([&] { return CompletePlan(topology, found, search.bound(), search.Seconds(), options); });
    if (!search.PassOver(found.front().engine, result.status())) return search.WithFaults(std::move(result));
  }
}

}  // namespace xccl
