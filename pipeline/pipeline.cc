#include "pipeline/pipeline.h"

#include <cstdint>
#include <optional>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "base/threads.h"
#include "base/version.h"
#include "ir/analysis/bitwise_same.h"
#include "ir/verify/verify_plan.h"
#include "ir/verify/verify_schedule.h"
#include "pipeline/describe.h"
#include "pipeline/lower_fastest.h"
#include "pipeline/search.h"
#include "synth/engines.h"

namespace xccl {
namespace {

// Returns a plan with the schedule and the collective, which move out of `made`.
Plan PlanOf(const Topology& topology, Synthesis& made, std::optional<LoweredProgram> program,
            const PlanOptions& options) {
  Plan plan{topology, std::move(made.collective), std::move(made.schedule), std::move(program), {}};
  plan.bitwise_same = IsBitwiseSame(plan.schedule, plan.collective, topology);
  plan.made_by = {.engine = made.engine,
                  .seed = options.request.seed,
                  .limits = options.limits_text,
                  .version = kVersion,
                  .size_bytes = options.request.size_bytes,
                  .model = options.request.model,
                  .machine = plan.program && options.machine ? options.machine->name : ""};
  return plan;
}

// Verifies the plan and, in a second thread, simulates its program, because both take long. Errors: kBug if
// the plan is wrong; kLimit if the deadline passes before the simulation ends. Requires: a program.
StatusOr<ProgramTime> ProveAndTime(const Plan& plan, std::optional<int64_t> known_ps, int64_t schedule_ps,
                                   const PlanOptions& options) {
  StatusOr<ProgramTime> time = ProgramTime();
  const auto simulate = [&] { time = TimeProgram(plan, known_ps, schedule_ps, options); };
  StatusOr<std::thread> thread = StartThread(simulate);
  if (!thread.ok()) simulate();
  const Status proved = CheckProved(VerifyPlan(plan), plan.made_by.engine);
  if (thread.ok()) thread->join();
  XCCL_RETURN_IF_ERROR(proved);
  return time;
}

}  // namespace

StatusOr<PlanResult> MakePlan(const Topology& topology, const Collective& collective,
                              const PlanOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine(options.engine));
  return MakePlanBy(*engine, topology, collective, options);
}

StatusOr<PlanResult> MakePlanBy(const Engine& engine, const Topology& topology, const Collective& collective,
                                const PlanOptions& asked) {
  const PlanOptions options = OnMachineOf(topology, asked);
  Search search(topology, collective, options);
  XCCL_RETURN_IF_ERROR(search.Begin());  // checks that all ranks are reachable; computes the lower bound
  while (true) {
    // Search. `found` holds the schedules, the preferred one first.
    XCCL_ASSIGN_OR_RETURN(Synthesis made, engine.Synthesize(search.request()));
    XCCL_ASSIGN_OR_RETURN(std::vector<Synthesis> found, search.Simulated(std::move(made)));
    // Prove, lower, prove again and describe.
    StatusOr<PlanResult> result =
        RunGuarded([&] { return CompletePlan(topology, found, search.bound(), search.Seconds(), options); });
    // If the plan is wrong, search again without the engine that made it.
    if (!search.PassOver(found.front().engine, result.status())) return search.WithFaults(std::move(result));
  }
}

StatusOr<PlanResult> CompletePlan(const Topology& topology, std::vector<Synthesis>& found, const Bound& bound,
                                  double synthesis_s, const PlanOptions& asked) {
  const PlanOptions options = OnMachineOf(topology, asked);
  // Prove the preferred schedule.
  const Synthesis& preferred = found.front();
  XCCL_RETURN_IF_ERROR(
      CheckProved(VerifySchedule(preferred.schedule, preferred.collective, topology), preferred.engine));

  // Find the schedule whose program is kept, and move it to the front of `found` (lower_fastest.h).
  FastestProgram lowered;
  if (options.lower) {
    XCCL_ASSIGN_OR_RETURN(lowered, LowerFastest(topology, options, found));
  }
  Plan plan = PlanOf(topology, found.front(), std::move(lowered.program), options);

  // Prove the plan and time its program. Leave the program out if the deadline passes.
  std::optional<ProgramTime> time;
  if (plan.program) {
    const int64_t schedule_ps = found.front().simulation->time_ps;
    const StatusOr<ProgramTime> timed = ProveAndTime(plan, lowered.time_ps, schedule_ps, options);
    if (!timed.ok() && !IsLate(timed.status(), options)) return timed.status();
    if (timed.ok()) {
      time = *timed;
    } else {
      lowered.no_program = timed.status().message();
      plan.program.reset();
      plan.made_by.machine.clear();
    }
  }

  // Describe the plan: ratio, statistics, runner-up, why the program is slower (describe.h).
  PlanResult result = Describe(std::move(plan), found, std::move(lowered), std::move(time), bound, options);
  result.synthesis_s = synthesis_s;
  return result;
}

}  // namespace xccl
