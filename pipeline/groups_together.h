// Plans the collectives of several groups of ranks that run at the same time on one machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "pipeline/plan_result.h"
#include "synth/groups/groups.h"
#include "synth/groups/plan_groups.h"
#include "topologies/topology.h"

namespace xccl {

struct GroupsResult {
  std::string name;  // the request's name
  std::vector<ProcessGroup> groups;
  std::vector<GroupOutcome> outcomes;  // by group
  int64_t unaware_ps = 0;              // JointPlan::unaware_ps
  // The plan for all groups. If they were planned apart, the plan of the first group of the slowest kind, on
  // the submachine of its members, or on the whole machine if that group needs relays. The result's time,
  // bound and ratio are then those of all groups.
  PlanResult result;
  size_t kinds_apart = 0;  // if the groups were planned apart: the number of their kinds; else 0
};

// Makes and proves one plan for all groups. If that ends with kLimit, because the plan would be too large or
// time runs out, and `needs_one_plan` is not set, plans and proves one group of each kind instead
// (synth/groups/apart.h). Lowers the one plan if options.lower is set. Errors: those of PlanGroups, PlanApart
// and CompletePlan.
StatusOr<GroupsResult> PlanGroupsTogether(const Topology& topology, GroupRequest request,
                                          const PlanOptions& options, bool needs_one_plan = false);

}  // namespace xccl
