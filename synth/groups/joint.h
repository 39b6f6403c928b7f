// Makes one user-defined collective of the collectives of several groups, and one schedule of their
// schedules. Everything that works on one plan then works on all groups' plans together. The joint collective
// has the parts of the groups, one group after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "synth/groups/groups.h"
#include "topologies/symmetry.h"

namespace xccl {

struct Joint {
  Collective collective;            // its parts are not cut into chunks
  int64_t size_bytes = 0;           // size at which each part has the bytes that its group's size gives
  std::vector<int32_t> first_part;  // by group: its first part; last entry: the number of parts
};

// The most rows of a joint collective's tables, about 70 bytes each.
inline constexpr int64_t kMostJointRows = int64_t{1} << 22;

// Makes the joint collective of all groups. Errors: kInvalidInput for a group that moves nothing, or for a
// part of more than 2^40 times the largest common unit of all parts; kLimit, before anything is built, for
// tables of more than kMostJointRows rows or 2^26 contributions. Cost: linear in the tables.
StatusOr<Joint> MakeJoint(const GroupRequest& request);

// A group's plan: its collective in chunks, and a plain schedule on the machine of all groups.
struct GroupSchedule {
  Collective collective;
  Schedule schedule;
};
// A plan, and the translation that takes its group to the group that it serves.
struct MovedSchedule {
  const GroupSchedule* plan = nullptr;
  int64_t element = 0;
};

// The order of different groups' steps. It decides which group is first on a link that several groups use.
enum class StepOrder : uint8_t {
  kTogether,   // all groups begin with step 0, so that short schedules end first
  kStretched,  // steps of short schedules spread over the longest schedule
  kInTurn,     // one group after the other, in the order of `turn`
};

struct MergedPlan {
  Collective collective;  // the joint collective, in chunks
  Schedule schedule;      // normalized
};
// Lays the groups' schedules side by side as one schedule. Requires: one schedule for each group; `turn` is a
// permutation of the groups if the order is kInTurn. Cost: linear.
MergedPlan Merge(const Joint& joint, const SymmetryGroup& translations,
                 const std::vector<MovedSchedule>& plans, StepOrder order,
                 const std::vector<int32_t>& turn = {});

}  // namespace xccl
