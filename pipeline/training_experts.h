// Plans expert dispatch and combine in a training step: the routes of the groups that share experts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "dispatch/plan.h"
#include "synth/groups/training.h"
#include "topologies/topology.h"

namespace xccl {

struct PlannedExperts {
  std::vector<ProcessGroup> groups;
  dispatch::ExpertPlan plan;  // of the first group, on the submachine of its members
  int64_t time_ps = 0;        // of the slowest group while all groups run; median over drawn routings
  int64_t bound_ps = 0;       // of the first group alone on its submachine, over the same routings
};

// Returns whether the tokens of a line fit the rows of an expert plan (dispatch::CheckSizes).
bool FitsExpertPlan(const TrainingLine& line, const TrainingJob& job);

// Plans one call for all groups of the line. Requires: the line is of Parallelism::kEp, and FitsExpertPlan.
// Groups whose submachines are alike have one plan. A group that shares a link with other groups gets a part
// of the link's bandwidth, in proportion to its load. Errors: those of MakeExpertPlan.
StatusOr<PlannedExperts> PlanExpertsTogether(const Topology& topology, const TrainingLine& line,
                                             const TrainingJob& job, dispatch::Call call);

}  // namespace xccl
