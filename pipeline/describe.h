// Fills in the PlanResult of a finished plan: its ratio to the bound, its statistics, the runner-up, and the
// reason why its program is slower than its schedule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/bounds/bound.h"
#include "ir/plan.h"
#include "pipeline/lower_fastest.h"
#include "pipeline/plan_result.h"
#include "synth/common/synthesizer.h"

namespace xccl {

struct ProgramTime {
  int64_t time_ps = 0;
  std::string loss = {};  // PlanResult::loss
};

// Returns the simulated time of the plan's program. If the program takes more than kSlower times
// `schedule_ps`, also returns the reason. To find the reason, simulates the program again with the most slots
// and, if there is a machine model, on links alone. `known_ps`: the program's time, if the caller knows it.
// Errors: those of SimulateProgram. Requires: a program.
StatusOr<ProgramTime> TimeProgram(const Plan& plan, std::optional<int64_t> known_ps, int64_t schedule_ps,
                                  const PlanOptions& options);

// Returns the result for `plan`, which was made from found.front(). The other entries of `found` are the
// candidates for runner-up. `lowered`: how the plan's program was found, or why the plan has no program.
// `time`: the time of the program. The caller sets PlanResult::synthesis_s.
PlanResult Describe(Plan plan, const std::vector<Synthesis>& found, FastestProgram lowered,
                    std::optional<ProgramTime> time, const Bound& bound, const PlanOptions& options);

}  // namespace xccl
