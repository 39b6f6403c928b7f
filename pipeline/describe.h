// The figures and the texts of a finished plan: ratio to the bound, statistics, the runner-up, and why its
// program is slower than its schedule.
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

// The simulated time of the plan's program, and why it is much longer than the schedule's. `known_ps`: the
// time, where the caller has it. A program that is much slower is simulated again with as many slots as there
// can be and, with a machine model, on links alone. Errors: those of SimulateProgram. Requires: a program.
StatusOr<ProgramTime> TimeProgram(const Plan& plan, std::optional<int64_t> known_ps, int64_t schedule_ps,
                                  const PlanOptions& options);

// The result for the plan of found.front(); the plans behind it are its runners-up. `lowered`: how its
// program was found, or why there is none. `time`: the time of its program. The caller sets the wall time.
PlanResult Describe(Plan plan, const std::vector<Synthesis>& found, FastestProgram lowered,
                    std::optional<ProgramTime> time, const Bound& bound, const PlanOptions& options);

}  // namespace xccl
