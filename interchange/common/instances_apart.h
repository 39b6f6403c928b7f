// Instances for executors that have none: threadblocks, connections and chunks of their own.
#pragma once

#include <cstdint>

#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

// The same program with one instance, in which every chunk is `copies` equal chunks and every threadblock so
// many threadblocks, on channels of their own. Copy i moves the i-th chunk of each, and never waits for
// another copy. An instruction of n chunks becomes n instructions where there are several copies. Requires:
// copies >= 1 and a program that verifies, without groups. Linear in what comes out.
LoweredProgram WithInstancesApart(const Program& program, const Collective& collective, int32_t copies);

}  // namespace xccl
