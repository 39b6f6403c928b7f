// Makes plans that start from an existing plan, for the same machine or for a machine that has changed.
#pragma once

#include <string>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/plan.h"
#include "pipeline/plan_result.h"
#include "topologies/topology.h"

namespace xccl {

// Improves or repairs the plan `from`. If the topology and the collective are exactly the plan's own, the
// engine greedy tries to make the plan faster. Otherwise the plan is repaired for the topology. A fresh plan
// replaces the repaired plan in two cases: the repair fails, or the repaired plan is more than 5 % above the
// bound and takes over 2 % longer than the fresh plan. The note says why, or how long the other plan takes.
// Errors: those of MakePlan, and kInvalidInput if the plan's collective has another kind or name; this
// message begins with `place`.
StatusOr<PlanResult> RepairPlan(const Plan& from, const std::string& place, const Topology& topology,
                                const Collective& collective, const PlanOptions& options);

}  // namespace xccl
