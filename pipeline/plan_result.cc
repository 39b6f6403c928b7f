#include "pipeline/plan_result.h"

#include "ir/known_machines.h"

namespace xccl {

PlanOptions OnMachineOf(const Topology& topology, PlanOptions options) {
  if (options.machine_of_topology && !options.machine) options.machine = MachineOfArch(topology.gpu_arch());
  return options;
}

SimulateOptions ProgramTiming(const PlanOptions& options) {
  return {.size_bytes = options.request.size_bytes,
          .model = options.request.model,
          .machine = options.machine ? &*options.machine : nullptr,
          .deadline = options.deadline};
}

Status CheckProved(const std::vector<Violation>& violations, std::string_view engine) {
  const Status status = ToStatus(violations);
  return status.ok() ? status : BugError(std::string(engine) + ": it made a wrong plan: " + status.message());
}

double RatioOf(int64_t time_ps, int64_t bound_ps) {
  if (bound_ps <= 0) return 1;
  return static_cast<double>(time_ps) / static_cast<double>(bound_ps);
}

}  // namespace xccl
