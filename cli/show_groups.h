// How the plan of several groups looks: a line for each group, or for each kind of group where there are
// many, then the plan of all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"
#include "synth/groups/groups.h"
#include "synth/groups/plan_groups.h"

namespace xccl {

struct GroupsResult {
  std::vector<ProcessGroup> groups;
  std::vector<GroupOutcome> outcomes;  // by group
  int64_t unaware_ps = 0;
  PipelineResult result;
};
// Plans them together, proves and, where asked for, lowers the plan.
StatusOr<GroupsResult> RunGroups(const Topology& topology, GroupRequest request,
                                 const PipelineOptions& options);

std::string GroupsText(const GroupsResult& groups, const std::string& file);
std::string GroupsJson(const GroupsResult& groups, const std::string& file);

}  // namespace xccl
