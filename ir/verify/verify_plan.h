// Proves a plan as a whole: its schedule (ir/verify/verify_schedule.h), its program
// (ir/verify/verify_program.h), that the two belong together, and what the file claims. Rules (docs/ir.md has
// the same list):
//   P10 the program belongs to the schedule. Each of its chunks is one chunk of the schedule, or several
//       neighbouring ones of a part. The path of each connection is a path of the schedule or a branch of
//       one, and the path of each group is one. For each chunk that is not always empty, each chain of links
//       and each set of contributions, the messages of the program and the transfers of the schedule carry
//       the chunk with these contributions over this chain equally often. A message on a tree counts on the
//       chain to each of the tree's ends.
//   C1  `bitwise_same`, where the plan has it, says whether the schedule gives all ranks the same bits; where
//       it is true, the program gives them too
#pragma once

#include <string_view>
#include <vector>

#include "ir/plan.h"
#include "ir/violation.h"

namespace xccl {

inline constexpr std::string_view kPlanRules[] = {"P10", "C1"};

// All violations up to kMaxViolations at each level. A rule is checked where those before it hold. Cost: that
// of VerifySchedule and VerifyProgram, which it calls, and of IsBitwiseSame; a compressed schedule with a
// program is written out.
std::vector<Violation> VerifyPlan(const Plan& plan);

}  // namespace xccl
