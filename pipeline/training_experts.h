// Expert dispatch and combine in a training step: the routes of the groups that share experts.
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
  int64_t time_ps = 0;        // of the slowest group while all run; the median of a few drawn routings
  int64_t bound_ps = 0;       // of the first group with the machine for itself, on the same routings
};

// Whether the tokens of a line go in rows that an expert plan can have: see dispatch::CheckSizes.
bool FitsExpertPlan(const TrainingLine& line, const TrainingJob& job);

// Plans one call for all groups of the line, which have the kind Parallelism::kEp. Groups whose submachines
// are alike have one plan. Where groups share a link, each has the part of it that its own load is of all.
// Errors: those of MakeExpertPlan. Requires: FitsExpertPlan.
StatusOr<PlannedExperts> PlanExpertsTogether(const Topology& topology, const TrainingLine& line,
                                             const TrainingJob& job, dispatch::Call call);

}  // namespace xccl
