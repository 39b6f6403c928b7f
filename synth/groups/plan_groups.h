// Plans the collectives of several groups that run at the same time, together: a link that one group gains
// another may lose. In: a machine and groups. Out: one plan for all of them, as a user-defined collective,
// with each group's time in it, its time alone, and its bound.
//
// Each group is planned by itself (synth/groups/member_plans.h), with and without relays, and the plans are
// laid side by side. They are laid side by side once more with groups on links that no other group's members
// have between them. Then groups are planned anew, one after the other, on the bandwidth that the others
// leave, while the busiest link gets less to carry. Greedy also searches few groups at once. The plan that
// simulates fastest is kept. Deterministic. Cost: an engine's search for each group whose surroundings differ
// from the others', and a simulation of all groups for each order side by side.
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
  std::string engine;       // the engine that made its plan
  int64_t alone_ps = 0;     // the fastest plan that was found, with the machine for itself
  int64_t together_ps = 0;  // when it is done, all groups running
  int64_t bound_ps = 0;     // with the machine for itself
};

struct JointPlan {
  Joint joint;
  Synthesis made;  // engine "groups"; simulated
  Bound bound;     // for all groups together; never below that of any
  std::vector<GroupOutcome> groups;
  int64_t unaware_ps = 0;  // time of all groups at once, each with the plan that is fastest alone
};

// Errors: those of MakeJoint and of the engine, with the group's name; ranks that are not joined.
StatusOr<JointPlan> PlanGroups(const Topology& topology, const GroupRequest& request,
                               const MemberPlanOptions& options);

}  // namespace xccl
