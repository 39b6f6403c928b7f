#include "pipeline/pipeline.h"

#include <chrono>
#include <functional>
#include <string_view>
#include <utility>

#include "ir/bitwise_same.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate_program.h"
#include "ir/verify/verify_plan.h"
#include "ir/verify/verify_schedule.h"
#include "synth/engines.h"
#include "synth/replan/replan.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

// A wrong plan from an engine is a bug of this program, not the user's error.
Status Proved(const std::vector<Violation>& violations, std::string_view engine) {
  const Status status = ToStatus(violations);
  return status.ok() ? status : BugError(std::string(engine) + " made a wrong plan: " + status.message());
}

// The engine's simulation of its plan, or a new one. Errors: kLimit where the deadline passes.
StatusOr<Simulation> SimulationOf(const Synthesis& made, const SynthesisRequest& request,
                                  const Deadline& deadline) {
  if (made.simulation && !made.simulation->stopped) return *made.simulation;
  SimulateOptions timing = TimingOf(request);
  timing.deadline = deadline;
  Simulation simulation = Simulate(made.schedule, made.collective, *request.topology, timing);
  if (simulation.stopped)
    return LimitReached(made.engine + ": " + deadline.ToString() + " passed before its plan was simulated");
  return simulation;
}

// The search leaves a share of the time to proofs, and a larger one to lowering, but not more than they take.
Deadline SearchDeadline(const PlanOptions& options) {
  return options.lower ? options.deadline.Leaving(0.5, 60) : options.deadline.Leaving(0.2, 10);
}

// Topology and collective → schedule, its time and the bound; then the rest.
StatusOr<PlanResult> PlanWith(const Topology& topology, const Collective& collective,
                              const PlanOptions& options,
                              const std::function<StatusOr<Synthesis>(const SynthesisRequest&)>& synthesize) {
  const auto began = std::chrono::steady_clock::now();
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, collective));
  XCCL_ASSIGN_OR_RETURN(const Bound bound,
                        LowerBound(topology, collective, options.request.size_bytes, options.request.model));
  const SynthesisRequest request = RequestOf(topology, collective, options, &bound);
  XCCL_ASSIGN_OR_RETURN(Synthesis made, synthesize(request));
  XCCL_ASSIGN_OR_RETURN(made.simulation, SimulationOf(made, request, options.deadline));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  return CompletePlan(topology, std::move(made), bound, seconds.count(), options);
}

// Schedule → program, verified and simulated.
Status LowerPlan(const Topology& topology, std::string_view engine, const PlanOptions& options,
                 PlanResult& result) {
  Plan& plan = result.plan;
  const SimulateOptions simulated{.size_bytes = options.request.size_bytes,
                                  .model = options.request.model,
                                  .machine = options.machine ? &*options.machine : nullptr,
                                  .deadline = options.deadline};
  XCCL_ASSIGN_OR_RETURN(plan.program, LowerFolded(plan.schedule, plan.collective, topology,
                                                  {.size_bytes = simulated.size_bytes,
                                                   .model = simulated.model,
                                                   .machine = simulated.machine,
                                                   .max_blocks = options.max_blocks,
                                                   .schedule_ps = result.simulation.time_ps,
                                                   .verify_passes = options.verify_passes,
                                                   .deadline = options.deadline.Leaving(0.3, 20)}));
  const auto& [collective, program] = *plan.program;
  XCCL_RETURN_IF_ERROR(Proved(VerifyPlan(plan), engine));
  XCCL_ASSIGN_OR_RETURN(const Simulation simulation,
                        SimulateProgram(program, collective, topology, simulated));
  result.program_time_ps = simulation.time_ps;
  if (options.machine) result.machine = options.machine->source;
  result.program_stats = Stats(program, CollectiveSizes(collective, simulated.size_bytes));
  return OkStatus();
}

}  // namespace

StatusOr<PlanResult> MakePlan(const Topology& topology, const Collective& collective,
                              const PlanOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine(options.engine));
  return PlanWith(topology, collective, options,
                  [&](const SynthesisRequest& request) { return engine->Synthesize(request); });
}

StatusOr<PlanResult> RepairPlan(const Plan& from, const std::string& place, const Topology& topology,
                                const Collective& collective, const PlanOptions& options) {
  if (from.collective.kind() != collective.kind() || from.collective.name() != collective.name())
    return InvalidInput(place + ": a plan for " + from.collective.name() + "; expected " + collective.name());
  const bool same = from.collective.spec() == collective.spec() &&
                    WriteNativeXml(from.topology) == WriteNativeXml(topology);
  XCCL_ASSIGN_OR_RETURN(const Engine* const chosen, FindEngine(options.engine));
  const Engine* const engine = same ? &ImprovingEngine() : chosen;
  return PlanWith(topology, collective, options, [&](SynthesisRequest request) -> StatusOr<Synthesis> {
    if (same) {
      const Synthesis start{.collective = from.collective,
                            .schedule = from.schedule,
                            .engine = from.made_by.engine,
                            .note = ""};
      request.start = &start;
      return engine->Synthesize(request);
    }
    StatusOr<Synthesis> repaired = Replan(from, request);
    if (repaired.ok()) return repaired;
    StatusOr<Synthesis> made = engine->Synthesize(request);
    if (made.ok())
      made->note = "planned anew: " + std::string(repaired.status().message()) +
                   (made->note.empty() ? "" : "; " + made->note);
    return made;
  });
}

StatusOr<PlanResult> CompletePlan(const Topology& topology, Synthesis made, const Bound& bound,
                                  double synthesis_s, const PlanOptions& options) {
  PlanResult result{
      .plan = Plan{topology, std::move(made.collective), std::move(made.schedule), std::nullopt, {}}};
  Plan& plan = result.plan;
  XCCL_RETURN_IF_ERROR(Proved(VerifySchedule(plan.schedule, plan.collective, topology), made.engine));
  result.note = std::move(made.note);
  result.synthesis_s = synthesis_s;
  result.simulation = *std::move(made.simulation);
  result.bound = bound;
  result.exact = made.exact;
  result.ratio = RatioOf(result.simulation.time_ps, bound.bound_ps);
  plan.bitwise_same = IsBitwiseSame(plan.schedule, plan.collective, topology);
  result.schedule_stats = Stats(plan.schedule, plan.collective, topology);
  result.relays = RelaysOf(plan.schedule, plan.collective, topology);
  plan.made_by = {.engine = made.engine,
                  .seed = options.request.seed,
                  .limits = options.limits_text,
                  .version = kVersion,
                  .size_bytes = options.request.size_bytes,
                  .model = options.request.model};
  // A compressed schedule that is too long to be written out is kept without a program.
  const bool too_long =
      !plan.schedule.symmetry.empty() && result.schedule_stats.transfers > kMostLoweredTransfers;
  if (options.lower && too_long)
    result.no_program = "the schedule, kept compressed, is too long to be lowered";
  if (!options.lower || too_long) return result;
  const Status lowered = LowerPlan(topology, made.engine, options, result);
  if (lowered.code() == StatusCode::kLimit && options.deadline.has_limit()) {
    plan.program.reset();
    result.no_program = lowered.message();
    return result;
  }
  XCCL_RETURN_IF_ERROR(lowered);
  return result;
}

StatusOr<GroupsResult> PlanGroupsTogether(const Topology& topology, GroupRequest request,
                                          const PlanOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  XCCL_ASSIGN_OR_RETURN(JointPlan plan, PlanGroups(topology, request,
                                                   {.engine = options.engine,
                                                    .model = options.request.model,
                                                    .seed = options.request.seed,
                                                    .allow_divergent = options.request.allow_divergent,
                                                    .deadline = SearchDeadline(options)}));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  PlanOptions joint = options;
  joint.request.size_bytes = plan.joint.size_bytes;
  XCCL_ASSIGN_OR_RETURN(PlanResult result,
                        CompletePlan(topology, std::move(plan.made), plan.bound, seconds.count(), joint));
  return GroupsResult{std::move(request.groups), std::move(plan.groups), plan.unaware_ps, std::move(result)};
}

StatusOr<smt::Front> PlanFront(const Topology& topology, const Collective& collective,
                               const PlanOptions& options) {
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, collective));
  return smt::FindFront(RequestOf(topology, collective, options, nullptr), AllEngines());
}

SynthesisRequest RequestOf(const Topology& topology, const Collective& collective, const PlanOptions& options,
                           const Bound* bound) {
  SynthesisRequest request = options.request;
  request.topology = &topology;
  request.collective = &collective;
  request.bound = bound;
  request.limits.deadline = SearchDeadline(options);
  return request;
}

StatusOr<Simulation> ProvedTime(const Synthesis& made, const SynthesisRequest& request,
                                const Deadline& deadline) {
  XCCL_RETURN_IF_ERROR(
      Proved(VerifySchedule(made.schedule, made.collective, *request.topology), made.engine));
  return SimulationOf(made, request, deadline);
}

double RatioOf(int64_t time_ps, int64_t bound_ps) {
  if (bound_ps <= 0) return 1;
  return static_cast<double>(time_ps) / static_cast<double>(bound_ps);
}

}  // namespace xccl
