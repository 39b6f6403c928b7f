#include "pipeline/pipeline.h"

#include <chrono>

#include "ir/bitwise_same.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate_program.h"
#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"
#include "synth/engines.h"
#include "synth/replan/replan.h"

namespace xccl {
namespace {

// A wrong plan out of an engine is our fault, not the user's.
Status Proved(const std::vector<Violation>& violations, std::string_view engine) {
  const Status status = ToStatus(violations);
  return status.ok() ? status : BugError(std::string(engine) + " made a wrong plan: " + status.message());
}

// What cannot be repaired is planned from nothing, and says why.
StatusOr<Synthesis> Make(const Synthesizer& engine, const SynthesisRequest& request, const Plan* damaged) {
  if (damaged == nullptr) return engine.Synthesize(request);
  StatusOr<Synthesis> repaired = Replan(*damaged, request);
  if (repaired.ok()) return repaired;
  StatusOr<Synthesis> made = engine.Synthesize(request);
  if (made.ok())
    made->note = "planned anew: " + std::string(repaired.status().message()) +
                 (made->note.empty() ? "" : "; " + made->note);
  return made;
}

}  // namespace

Status CheckMade(const Synthesis& made, const Topology& topology) {
  return Proved(VerifySchedule(made.schedule, made.collective, topology), made.engine);
}

double RatioOf(int64_t time_ps, int64_t bound_ps) {
  if (bound_ps <= 0) return 1;
  return static_cast<double>(time_ps) / static_cast<double>(bound_ps);
}

StatusOr<PipelineResult> RunPipeline(const Topology& topology, const Collective& collective,
                                     const PipelineOptions& options) {
  // Topology and collective → schedule, its time and the bound.
  XCCL_ASSIGN_OR_RETURN(const Synthesizer* const engine, FindSynthesizer(options.engine));
  const auto began = std::chrono::steady_clock::now();
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, collective));
  const SynthesisRequest request{.topology = &topology,
                                 .collective = &collective,
                                 .size_bytes = options.size_bytes,
                                 .model = options.model,
                                 .limits = options.limits,
                                 .seed = options.seed,
                                 .allow_divergent = options.allow_divergent,
                                 .start = options.start,
                                 .stopped = options.stopped,
                                 .progress = options.progress};
  XCCL_ASSIGN_OR_RETURN(Synthesis made, Make(*engine, request, options.replan));
  if (!made.simulation)
    made.simulation = Simulate(made.schedule, made.collective, topology,
                               {.size_bytes = options.size_bytes, .model = options.model});
  XCCL_ASSIGN_OR_RETURN(const Bound bound,
                        LowerBound(topology, made.collective, options.size_bytes, options.model));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  return CompletePlan(topology, std::move(made), bound, seconds.count(), options);
}

StatusOr<PipelineResult> CompletePlan(const Topology& topology, Synthesis made, const Bound& bound,
                                      double synthesis_s, const PipelineOptions& options) {
  PipelineResult result{
      .plan = Plan{topology, std::move(made.collective), std::move(made.schedule), std::nullopt, {}}};
  Plan& plan = result.plan;
  result.simulation = *std::move(made.simulation);
  result.bound = bound;
  result.synthesis_s = synthesis_s;

  // Schedule → proof and figures.
  XCCL_RETURN_IF_ERROR(Proved(VerifySchedule(plan.schedule, plan.collective, topology), made.engine));
  result.note = made.note;
  result.ratio = RatioOf(result.simulation.time_ps, result.bound.bound_ps);
  result.bitwise_same = IsBitwiseSame(plan.schedule, plan.collective, topology);
  result.schedule_stats = Stats(plan.schedule, plan.collective, topology);
  result.relays = RelaysOf(plan.schedule, plan.collective, topology);
  plan.made_by = {.engine = made.engine,
                  .seed = options.seed,
                  .limits = options.limits_text,
                  .version = kVersion,
                  .size_bytes = options.size_bytes,
                  .model = std::string(ToString(options.model)),
                  .exact = made.exact};
  // A compressed schedule too long to be written out is kept without a program.
  const bool too_long =
      !plan.schedule.symmetry.empty() && result.schedule_stats.transfers > kMostLoweredTransfers;
  if (!options.lower || too_long) return result;

  // Schedule → program, proved and timed again.
  const MachineModel* const machine = options.machine ? &*options.machine : nullptr;
  XCCL_ASSIGN_OR_RETURN(plan.program, LowerFolded(plan.schedule, plan.collective, topology,
                                                  {.size_bytes = options.size_bytes,
                                                   .model = options.model,
                                                   .machine = machine,
                                                   .max_blocks = options.max_blocks}));
  const auto& [cut, program] = *plan.program;
  XCCL_RETURN_IF_ERROR(Proved(VerifyProgram(program, cut), made.engine));
  const SimulateOptions simulate{
      .size_bytes = options.size_bytes, .model = options.model, .machine = machine};
  XCCL_ASSIGN_OR_RETURN(const Simulation program_time, SimulateProgram(program, cut, topology, simulate));
  result.program_time_ps = program_time.time_ps;
  if (machine != nullptr) result.machine = machine->source;
  result.program_stats = Stats(program, CollectiveSizes(cut, options.size_bytes));
  return result;
}

}  // namespace xccl
