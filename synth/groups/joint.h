// Makes the collectives of several groups one user-defined collective, and their schedules one schedule, so
// that everything that works on a plan works on theirs. In: groups and a plan of each. Out: tables whose
// parts are the groups' parts, one group after the other, and the plans side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "synth/groups/groups.h"

namespace xccl {

struct Joint {
  Collective collective;            // parts whole
  int64_t size_bytes = 0;           // at which each part has exactly the bytes that its group gives it
  std::vector<int32_t> first_part;  // by group, and the end
};

// Errors: kInvalidInput for a group whose size leaves no bytes for its parts, or whose parts are too large;
// kLimit for tables of more than 2^26 contributions. Cost: linear in the tables.
StatusOr<Joint> MakeJoint(const GroupRequest& request);

// A group's plan: its collective cut, and a plain schedule on the machine of all.
struct GroupSchedule {
  Collective collective;
  Schedule schedule;
};

// The step order decides which group goes first on a link that several groups use.
enum class StepOrder : uint8_t {
  kTogether,   // all groups begin with step 0: short schedules are done first
  kStretched,  // steps of short schedules are spread over those of the longest
  kInTurn,     // all of a group before all of the next, in the order of `turn`
};

struct MergedPlan {
  Collective collective;  // the joint one, cut
  Schedule schedule;      // normalized
};
// Requires: one schedule for each group; `turn` a permutation of the groups where the order is kInTurn.
// Linear.
MergedPlan Merge(const Joint& joint, const std::vector<const GroupSchedule*>& plans, StepOrder order,
                 const std::vector<int32_t>& turn = {});

}  // namespace xccl
