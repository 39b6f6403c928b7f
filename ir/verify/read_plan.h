// Plan files as everyone but `verify` reads them: proved on load.
#pragma once

#include <string>

#include "base/status.h"
#include "ir/plan.h"

namespace xccl {

// A plan that comes back does what it says, schedule and program. Errors: kInvalidInput with the place and,
// for wrong plans, the first violation. `verify` wants the violations themselves: ReadPlanUnverified.
StatusOr<Plan> ReadPlan(const std::string& path);

}  // namespace xccl
