// Plans groups that are too many, or too large, for one schedule of all groups. Each kind of group (alike.h)
// is planned at most twice, on the submachine of its members or, if that does not join them, on the whole
// machine. Schedules may stay compressed. Groups that share a link divide its bandwidth in proportion to
// their loads on it. The shares add up to at most the bandwidth, so all groups can run at once. Groups that
// share no link keep their times.
//
// Time and memory grow with the links of the groups' submachines, not with the tables and transfers of all
// groups together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/bounds/bound.h"
#include "synth/common/synthesizer.h"
#include "synth/groups/groups.h"
#include "synth/groups/member_plans.h"
#include "synth/groups/plan_groups.h"
#include "topologies/submachine.h"
#include "topologies/topology.h"

namespace xccl {

struct ApartPlan {
  struct Kind {
    size_t first = 0;                // the kind's first group
    const LonePlan* plan = nullptr;  // its plan, which belongs to the MemberPlans
  };
  std::vector<Kind> kinds;
  size_t slowest = 0;                // the kind of a group that ends last
  std::vector<GroupOutcome> groups;  // by group
  int64_t time_ps = 0;               // until the last group ends
  int64_t unaware_ps = 0;            // likewise, if every group has its plan on all links
  Bound bound;                       // the largest bound of a group with the machine for itself
};

// Returns the kinds' plans and the times of all groups. Two choices are compared. In one, all kinds have
// plans on all links between their members. In the other, a kind has a plan on links of no other group, if
// such links join its members. The faster choice is returned. Errors: those of the engine and the bounds,
// with the group's name.
StatusOr<ApartPlan> PlanApart(const Topology& topology, const std::vector<ProcessGroup>& groups,
                              TimeModel model, MemberPlans& plans);

}  // namespace xccl
