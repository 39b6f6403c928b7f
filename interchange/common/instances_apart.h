// Instances for executors that have none: threadblocks, connections and chunks of their own.
#pragma once

#include <cstdint>

#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

// Returns a program with one instance that does the work of `copies` instances: every chunk becomes `copies`
// equal chunks and every threadblock `copies` threadblocks, each with a channel of its own. Copy i of a
// threadblock moves the i-th part of every chunk, and never waits for another copy. An instruction of n
// chunks becomes n instructions where there are several copies. Requires: copies >= 1 and a program that
// verifies, without groups. Cost: linear in the result.
LoweredProgram WithInstancesApart(const Program& program, const Collective& collective, int32_t copies);

}  // namespace xccl
