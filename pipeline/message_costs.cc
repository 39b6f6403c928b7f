// Costs of messages are those of protocol LL, the least of all protocols.
#include "pipeline/message_costs.h"

#include <fmt/core.h>

#include <cstdint>

#include "base/units.h"
#include "ir/analysis/schedule_stats.h"
#include "ir/known_machines.h"
#include "ir/simulate/simulate_program.h"

namespace xccl {

std::string CostOfShortMessages(const PlanResult& result) {
  const Plan& plan = result.plan;
  const int64_t size_bytes = result.simulation.size_bytes;
  if (!result.machine.empty()) return "";
  const LinkUse use = LinkUseOf(plan.schedule, plan.collective, plan.topology, size_bytes);
  const MachineModel model = BlackwellModel();
  const ProtocolCost& cost = model.CostOf(Protocol::kLl);
  const auto bytes = static_cast<int64_t>(use.message_bytes);
  if (use.messages == 0 || TransferPs(bytes, cost.block_bytes_per_s) >= cost.message_ps) return "";
  std::string time;
  if (plan.program) {
    const StatusOr<Simulation> simulated =
        SimulateProgram(plan.program->program, plan.program->collective, plan.topology,
                        {.size_bytes = size_bytes, .model = plan.made_by.model, .machine = &model});
    if (simulated.ok())
      time = fmt::format("the program takes {} on a GPU (simulated on {})",
                         FormatDurationShort(simulated->time_ps), model.name);
  }
  if (time.empty()) {
    const int64_t of_rank =
        (use.messages + plan.collective.num_members() - 1) / plan.collective.num_members();
    time = fmt::format("about {} on a GPU (a launch and {} a rank x {}, estimated for {})",
                       FormatDurationShort(model.launch_ps + of_rank * cost.message_ps), of_rank,
                       FormatDuration(cost.message_ps), model.name);
  }
  return fmt::format("{} bytes each: {}; hint: arch=\"sm90\" or --machine hopper", bytes, time);
}

}  // namespace xccl
