// Plans that start from a plan, for the machine as it was or as it has become.
#pragma once

#include <string>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/plan.h"
#include "pipeline/plan_result.h"
#include "topologies/topology.h"

namespace xccl {

// Starts from a plan. On the machine that the plan is for, greedy makes it no slower. On another machine the
// plan is repaired. It is planned anew where a repair fails, and where the repaired plan is more than 5 %
// above the bound and a fresh plan is faster by over 2 %; the note says why, or what the fresh plan would
// take. Errors: those of MakePlan, and kInvalidInput where the plan is for another collective; `place` opens
// the message.
StatusOr<PlanResult> RepairPlan(const Plan& from, const std::string& place, const Topology& topology,
                                const Collective& collective, const PlanOptions& options);

}  // namespace xccl
