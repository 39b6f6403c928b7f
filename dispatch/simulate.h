// Moves the messages of one call over the links of its machine, event by event. Predictor tells the time of
// many draws from loads alone; this simulation is what it is compared with.
#pragma once

#include <cstdint>

#include "dispatch/plan.h"
#include "dispatch/routing.h"

namespace xccl::dispatch {

// The time until the last row is where it is needed, in picoseconds. All rows are offered at the beginning,
// the first tokens of all homes first; a sender adds rows to a message that no link has begun to carry, up to
// rows_per_message. A link carries one message at a time, the one that was ready first. A receiver passes
// rows on when their message is there whole. Slots are as many as needed. Links as in docs/ir.md, pipelined.
// `needs`: of a routing that fits. Cost: messages × links.
int64_t SimulateCall(const ExpertPlan& plan, const Needs& needs, Call call);

}  // namespace xccl::dispatch
