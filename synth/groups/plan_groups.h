// Plans the collectives of several groups that run at the same time, together: what one gains by taking a
// link another may lose. In: a machine and groups; out: one plan for all of them, as a user-defined
// collective, with the time of each group in it, alone, and at best.
//
// Each group is planned by itself (synth/groups/member_plans.h), with and without relays, and the plans are
// laid side by side; once more with groups on links that no other group's members have between them. Then
// groups are planned anew, one after the other, on the bandwidth that the others leave, while the busiest
// link gets less to carry. Few groups are also searched at once, by greedy. What simulates fastest is kept.
// Deterministic. Cost: an engine's search for each group that hangs unlike the others, and a simulation of
// all groups for each way of laying them side by side.
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
  std::string engine;       // whose plan it is
  int64_t alone_ps = 0;     // the fastest plan that was found, with the machine for itself
  int64_t together_ps = 0;  // when it is done, all groups running
  int64_t bound_ps = 0;     // with the machine for itself
};

struct JointPlan {
  Joint joint;
  Synthesis made;  // engine "groups"; simulated
  Bound bound;     // of all groups together; never below that of any
  std::vector<GroupOutcome> groups;
  int64_t unaware_ps = 0;  // of all groups at once, each with the plan that is fastest alone
};

// Errors: those of MakeJoint and of the engine, with the group's name; ranks that are not joined.
StatusOr<JointPlan> PlanGroups(const Topology& topology, const GroupRequest& request,
                               const MemberPlanOptions& options);

}  // namespace xccl
