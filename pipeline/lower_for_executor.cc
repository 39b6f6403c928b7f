#include "pipeline/lower_for_executor.h"

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "base/units.h"
#include "ir/known_machines.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate_program.h"
#include "pipeline/plan_result.h"

namespace xccl {
namespace {

// Returns the program's time at the plan's size, on the known machine model that the plan names, or else on
// links alone; absent if the program cannot be simulated.
std::optional<int64_t> TimeOf(const LoweredProgram& lowered, const Plan& plan) {
  const std::optional<MachineModel> machine = KnownMachine(plan.made_by.machine);
  const StatusOr<Simulation> made = SimulateProgram(lowered.program, lowered.collective, plan.topology,
                                                    {.size_bytes = plan.made_by.size_bytes,
                                                     .model = plan.made_by.model,
                                                     .machine = machine ? &*machine : nullptr});
  return made.ok() ? std::optional(made->time_ps) : std::nullopt;
}

// Returns the time of the program as the target runs it; absent if the target cannot run it.
std::optional<int64_t> TimeOf(const StatusOr<LoweredProgram>& as_run, const Plan& plan) {
  return as_run.ok() ? TimeOf(*as_run, plan) : std::nullopt;
}

bool IsSlower(std::optional<int64_t> time_ps, std::optional<int64_t> plan_ps) {
  return time_ps && plan_ps && static_cast<double>(*time_ps) > kSlower * static_cast<double>(*plan_ps);
}

void WarnIfSlower(std::optional<int64_t> time_ps, std::optional<int64_t> plan_ps, const Plan& plan,
                  std::vector<std::string>& warnings) {
  if (IsSlower(time_ps, plan_ps))
    warnings.push_back(fmt::format("at {} it is slower than the plan: {} instead of {}, as simulated",
                                   FormatSize(plan.made_by.size_bytes), FormatDurationShort(*time_ps),
                                   FormatDurationShort(*plan_ps)));
}

// Lowers the plan's schedule for the slots of MSCCL's executors. Chunks are not merged into one instruction,
// because the executors send large chunks one by one.
StatusOr<LoweredProgram> LowerForFewSlots(const Plan& plan) {
  const std::optional<MachineModel> machine = KnownMachine(plan.made_by.machine);
  LowerOptions options{.size_bytes = plan.made_by.size_bytes,
                       .model = plan.made_by.model,
                       .machine = machine ? &*machine : nullptr};
  options.form = lowering::Form{.slots = kMscclSimpleSlots, .merge = 1};
  return LowerFolded(plan.schedule, plan.collective, plan.topology, options);
}

}  // namespace

StatusOr<ExecutorProgram> LowerFor(const MscclXmlOptions& target, const Plan& plan) {
  const auto as_run = [&](const LoweredProgram& lowered) {
    return AsRunByMsccl(lowered.program, lowered.collective, target);
  };
  const LoweredProgram& own = *plan.program;
  const StatusOr<LoweredProgram> own_as_run = as_run(own);
  const std::optional<int64_t> plan_ps = TimeOf(own, plan), own_ps = TimeOf(own_as_run, plan);
  const bool counts_on_more = own.program.slots > kMscclSimpleSlots && own.program.groups.empty();
  if (counts_on_more && (!own_as_run.ok() || IsSlower(own_ps, plan_ps))) {
    StatusOr<LoweredProgram> few = LowerForFewSlots(plan);
    const StatusOr<LoweredProgram> few_as_run =
        few.ok() ? as_run(*few) : StatusOr<LoweredProgram>(few.status());
    const std::optional<int64_t> few_ps = TimeOf(few_as_run, plan);
    if (few_as_run.ok() && (!own_as_run.ok() || (few_ps && *few_ps < *own_ps))) {
      ExecutorProgram other{*std::move(few), {}};
      other.warnings.push_back(fmt::format(
          "it is another program of the plan's schedule, for {} slots: {}", kMscclSimpleSlots,
          own_as_run.ok() ? fmt::format("the plan's own takes {} with so few", FormatDurationShort(*own_ps))
                          : own_as_run.status().message()));
      WarnIfSlower(few_ps, plan_ps, plan, other.warnings);
      return other;
    }
  }
  if (!own_as_run.ok()) return own_as_run.status();
  ExecutorProgram same{own, {}};
  WarnIfSlower(own_ps, plan_ps, plan, same.warnings);
  return same;
}

ExecutorProgram LowerFor(const MscclppOptions& target, const Plan& plan) {
  const LoweredProgram& own = *plan.program;
  ExecutorProgram same{own, {}};
  const LoweredProgram as_run{own.collective, AsRunByMscclpp(own.program, target)};
  WarnIfSlower(TimeOf(as_run, plan), TimeOf(own, plan), plan, same.warnings);
  return same;
}

}  // namespace xccl
