#include "pipeline/predict.h"

#include "ir/bounds/bound.h"
#include "ir/simulate/simulate_program.h"
#include "ir/sizes.h"
#include "pipeline/plan_result.h"

namespace xccl {

double BusBandwidth(const Collective& collective, const Simulation& simulation) {
  return simulation.algbw_bytes_per_s() * BusFactor(collective.kind(), collective.num_members());
}

PlanTime MakePlanTime(const std::string& engine, const std::string& made_by, const Collective& collective,
                      const Simulation& simulation, int64_t bound_ps) {
  return {.engine = engine,
          .made_by = made_by,
          .size_bytes = simulation.size_bytes,
          .time_ps = simulation.time_ps,
          .algbw_bytes_per_s = simulation.algbw_bytes_per_s(),
          .busbw_bytes_per_s = BusBandwidth(collective, simulation),
          .bound_ps = bound_ps,
          .ratio = RatioOf(simulation.time_ps, bound_ps)};
}

PlanLevel LevelOf(const Plan& plan, const MachineModel* machine) {
  return plan.program && machine != nullptr ? PlanLevel::kProgram : PlanLevel::kSchedule;
}

StatusOr<Simulation> SimulatePlan(const Plan& plan, int64_t size_bytes, TimeModel model, PlanLevel level,
                                  const MachineModel* machine) {
  const SimulateOptions options{.size_bytes = size_bytes, .model = model, .machine = machine};
  if (level == PlanLevel::kSchedule) return Simulate(plan.schedule, plan.collective, plan.topology, options);
  return SimulateProgram(plan.program->program, plan.program->collective, plan.topology, options);
}

StatusOr<std::vector<PlanTime>> Predict(const Plan& plan, std::span<const int64_t> sizes, TimeModel model,
                                        PlanLevel level, const MachineModel* machine) {
  std::vector<PlanTime> times;
  for (const int64_t size : sizes) {
    XCCL_ASSIGN_OR_RETURN(const Simulation simulation, SimulatePlan(plan, size, model, level, machine));
    XCCL_ASSIGN_OR_RETURN(const Bound bound, LowerBound(plan.topology, plan.collective, size, model));
    times.push_back(
        MakePlanTime(plan.made_by.engine, plan.made_by.engine, plan.collective, simulation, bound.bound_ps));
    times.back().asked_bytes = size;
  }
  return times;
}

}  // namespace xccl
