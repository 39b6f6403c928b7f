// The schedule that a program belongs to (rule P10 in docs/ir.md), for programs that come without one.
#pragma once

#include "base/status.h"
#include "ir/program.h"
#include "ir/schedule.h"

namespace xccl {

// One transfer for each chunk of each message, over the path of its connection or group, in the fewest steps
// that the program's order allows. A schedule has one value for each (rank, chunk): a rank that keeps several
// sums of a chunk, and sends each, has none. Errors: kInvalidInput that names the instruction. Requires: a
// program that verifies, without fan-ins, whose connections and groups have paths. Cost: linear in the chunks
// that instructions touch, times the sums that a rank has of a chunk.
StatusOr<Schedule> ScheduleOf(const LoweredProgram& lowered);

}  // namespace xccl
