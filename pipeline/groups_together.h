// Several groups of ranks planned together.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "pipeline/plan_result.h"
#include "synth/groups/groups.h"
#include "synth/groups/plan_groups.h"
#include "topologies/topology.h"

namespace xccl {

struct GroupsResult {
  std::vector<ProcessGroup> groups;
  std::vector<GroupOutcome> outcomes;  // by group
  int64_t unaware_ps = 0;              // JointPlan::unaware_ps
  PlanResult result;
};

// Plans the groups together and proves the plan. Lowers it where asked for. Errors: those of PlanGroups and
// CompletePlan.
StatusOr<GroupsResult> PlanGroupsTogether(const Topology& topology, GroupRequest request,
                                          const PlanOptions& options);

}  // namespace xccl
