// Reads plans to run them or to write them for other tools. A plan file of a large symmetric machine may have
// a compressed schedule and no program. The program is then made of the schedule: that of all ranks, or that
// of one rank, which costs no more than the schedule (ir/lower/lower_ranks.h).
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "base/status.h"
#include "ir/plan.h"

namespace xccl {

// Reads and verifies a plan. If it has no program, a program of all ranks is made of its compressed schedule
// and proved. With `own`, the new program has the instructions of that rank alone, and is not proved. For
// other ranks it has the threadblocks and connections, which a process of that rank needs to run. Errors:
// those of ReadPlan and RankLowering; kInvalidInput if the plan has no program and its schedule is plain;
// kLimit if the program of all ranks has more than kMostTransfers messages, or does not fit the memory.
StatusOr<Plan> ReadRunnablePlan(const std::string& file, std::optional<Rank> own = {});

// Reads and verifies a plan. Its program has the threadblocks and connections of `rank` alone, whether the
// file has a program or not. Errors: as ReadRunnablePlan; kInvalidInput if the plan has no such rank.
StatusOr<Plan> ReadPlanOfRank(const std::string& file, Rank rank);

}  // namespace xccl
