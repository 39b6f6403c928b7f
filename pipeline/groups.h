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
// Plans the groups together and proves the plan. Lowers it where asked for.
StatusOr<GroupsResult> PlanGroupsTogether(const Topology& topology, GroupRequest request,
                                          const PlanOptions& options);

}  // namespace xccl
