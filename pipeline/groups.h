// Several process groups of one machine, planned together.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/pipeline.h"
#include "synth/groups/groups.h"
#include "synth/groups/plan_groups.h"

namespace xccl {

struct GroupsResult {
  std::vector<ProcessGroup> groups;
  std::vector<GroupOutcome> outcomes;  // by group
  int64_t unaware_ps = 0;
  PlanResult result;
};
// Plans them together, proves and, where asked for, lowers the plan.
StatusOr<GroupsResult> PlanGroupsTogether(const Topology& topology, GroupRequest request,
                                          const PlanOptions& options);

}  // namespace xccl
