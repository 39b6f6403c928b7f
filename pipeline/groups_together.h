// Plans the collectives of several groups of ranks that run at the same time on one machine.
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

// Makes and proves one plan for all groups. Lowers the plan if options.lower is set. Errors: those of
// PlanGroups and CompletePlan.
StatusOr<GroupsResult> PlanGroupsTogether(const Topology& topology, GroupRequest request,
                                          const PlanOptions& options);

}  // namespace xccl
