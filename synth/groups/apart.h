// Plans groups that are too many, or too large, for one schedule of all. Each kind of group (alike.h) is
// planned once, on the submachine of its members, and its schedule may stay compressed. Groups that share no
// link with others keep their times. Where groups share a link, each has the share of its bandwidth that it
// has in the link's load, which is feasible: the shares of a link add up to it.
//
// Time and memory grow with the links that the groups' submachines have, not with the tables and transfers of
// all groups together.
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
  int64_t unaware_ps = 0;            // likewise, where each group has its plan on all links
  Bound bound;                       // the largest bound of a group with the machine for itself
};

// Returns the kinds' plans and the times of all groups. The plans are on all links between the members, or on
// those of no other group, whichever is faster. Errors: those of the engine and the bounds, with the group's
// name.
StatusOr<ApartPlan> PlanApart(const Topology& topology, const std::vector<ProcessGroup>& groups,
                              TimeModel model, MemberPlans& plans);

}  // namespace xccl
