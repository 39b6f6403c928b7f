// Fan-ins for executors whose threadblocks receive from one rank each.
#pragma once

#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

// Returns the program without fan-ins. In place of a fan-in's threadblock, the root has one threadblock for
// every member. Each adds the member's message to the sum of the threadblocks before it, in the order of the
// group. The last one has the number of the fan-in's threadblock, and also sends and stores the sum as the
// fan-in did. The order of additions stays; types narrower than float are rounded after every addition. A sum
// takes scratch if the program stores it nowhere, or if the root's own value is not its first operand. Groups
// of other kinds stay. Requires: a program that verifies. Cost: linear in the result.
Program WithoutFanIns(const Program& program, const Collective& collective);

}  // namespace xccl
