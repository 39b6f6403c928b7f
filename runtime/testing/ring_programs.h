// Programs written by hand, for tests and benchmarks of the executor alone.
#pragma once

#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

Collective AllMembers(CollectiveKind kind, int32_t ranks, int32_t chunks = 1);
// Requires: AllMembers(kAllgather, ranks).
Program RingAllgather(int32_t ranks, int32_t slots = 2);
// Requires: AllMembers(kAllreduce, ranks, ranks): one chunk a rank. Rank r ends chunk r's sum; the rest is a
// ring allgather. Right in place too.
Program RingAllreduce(int32_t ranks, int32_t slots = 2);
// Two ranks exchange their inputs; what comes lies in scratch until it is added. Requires:
// AllMembers(kAllreduce, 2).
Program SwapAllreduce();

}  // namespace xccl
