#include "ir/interchange/place.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/version.h"
#include "ir/bitwise_same.h"
#include "ir/interchange/place_paths.h"
#include "ir/interchange/schedule_of.h"
#include "ir/verify/verify_plan.h"
#include "ir/verify/verify_program.h"
#include "ir/violation.h"

namespace xccl {
namespace {

// True only where schedule and program both do; what is not claimed is not wrong.
std::optional<bool> BitsClaimed(const Plan& plan) {
  if (!IsBitwiseSame(plan.schedule, plan.collective, plan.topology)) return false;
  ProgramRecord record{Traffic(plan.program->collective.num_chunks())};
  VerifyProgram(plan.program->program, plan.program->collective, plan.topology, &record);
  return record.bitwise_same ? std::optional(true) : std::nullopt;
}

}  // namespace

StatusOr<Plan> PlaceOnMachine(const Imported& imported, const Topology& topology,
                              std::vector<std::string>* warnings) {
  LoweredProgram lowered = imported.lowered;
  XCCL_ASSIGN_OR_RETURN(const int64_t lost, PlacePaths(lowered.program, lowered.collective, topology));
  if (lost > 0 && warnings != nullptr)
    warnings->push_back(
        fmt::format("the file names {} paths of a machine, which are not all paths of {}: others are chosen",
                    lost, topology.name()));
  XCCL_ASSIGN_OR_RETURN(Schedule schedule, ScheduleOf(lowered));
  Plan plan{topology, lowered.collective, std::move(schedule), std::move(lowered), {}};
  plan.made_by.engine = imported.name.empty() ? imported.format : imported.name;
  plan.made_by.version = kVersion;
  if (imported.max_bytes > 0) plan.made_by.size_bytes = std::min(plan.made_by.size_bytes, imported.max_bytes);
  plan.made_by.size_bytes = std::max(plan.made_by.size_bytes, imported.min_bytes);
  plan.sizes = {imported.min_bytes, imported.max_bytes};
  plan.bitwise_same = BitsClaimed(plan);
  if (const std::vector<Violation> wrong = VerifyPlan(plan); !wrong.empty())
    return BugError(imported.format + ": " + ToString(wrong.front()));
  return plan;
}

}  // namespace xccl
