// Plans the collectives of several groups that run at the same time and compete for links. The result is one
// plan for all groups, as a user-defined collective, with three times for each group: its time in the joint
// plan, its time alone, and its bound.
//
// The algorithm (plan_groups.cc) is deterministic unless the deadline passes. Cost: an engine's search for
// each group whose surroundings differ from those of earlier groups, about 24 more searches if links are
// crowded, and a simulation of all groups for each order of steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/bounds/bound.h"
#include "synth/common/synthesizer.h"
#include "synth/groups/groups.h"
#include "synth/groups/joint.h"
#include "synth/groups/member_plans.h"
#include "topologies/topology.h"

namespace xccl {

struct GroupOutcome {
  std::string engine;       // the engine that made the group's plan
  int64_t alone_ps = 0;     // time of its fastest plan, with the machine for itself
  int64_t together_ps = 0;  // when the group ends while all groups run
  int64_t bound_ps = 0;     // lower bound, with the machine for itself
};

struct JointPlan {
  Joint joint;
  Synthesis made;  // made.engine is "groups"; simulated
  Bound bound;     // for all groups together; at least each group's bound
  std::vector<GroupOutcome> groups;
  int64_t unaware_ps = 0;  // time of all groups together if each has the plan that is fastest alone
};

// Returns the best plan found for all groups together. Errors: the errors of MakeJoint; the engine's errors
// with the group's name; ranks that no path joins; kLimit if the plans have more than kMostTransfers
// transfers together.
StatusOr<JointPlan> PlanGroups(const Topology& topology, const GroupRequest& request,
                               const MemberPlanOptions& options);
// Returns the best plan as above, with single plans from `plans`, which must be made of the request's groups
// with the same options.
StatusOr<JointPlan> PlanGroups(const Topology& topology, const GroupRequest& request,
                               const MemberPlanOptions& options, MemberPlans& plans);

}  // namespace xccl
