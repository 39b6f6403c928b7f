// Reads plan files for every command but `verify`: a plan is proved when it is loaded.
#pragma once

#include <string>

#include "base/status.h"
#include "ir/plan.h"

namespace xccl {

// Returns a plan whose schedule and program do what it says. Errors: kInvalidInput with the place and, for
// wrong plans, the first violation. To get all violations, use ReadPlanUnverified.
StatusOr<Plan> ReadPlan(const std::string& path);

}  // namespace xccl
