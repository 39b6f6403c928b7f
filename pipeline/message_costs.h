// Tells the cost of a plan's messages on a current GPU, for plans that were made without a machine model. On
// links alone messages cost nothing, so such a plan may have many short ones.
#pragma once

#include <string>

#include "pipeline/plan_result.h"

namespace xccl {

// Returns one sentence if the plan's messages are so short that a mean message costs more than its bytes
// take, on NVIDIA's B200 (BlackwellModel). The sentence has the program's simulated time on that model or, if
// no program can be simulated, an estimate by the number of messages. Returns an empty text if messages are
// longer, if there are none, or if the plan was made for a machine model.
std::string CostOfShortMessages(const PlanResult& result);

}  // namespace xccl
