// A plan as the text of its file, for processes that hand plans on.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/plan.h"

namespace xccl {

// Returns the text of a plan file. A compressed schedule stays compressed.
std::string PlanText(const Plan& plan);
// Reads a plan as ReadPlanUnverified does; `place` opens messages.
StatusOr<Plan> ParsePlanUnverified(std::string_view text, const std::string& place);

}  // namespace xccl
