// The engine "flow" for collectives that bring each part to one destination: alltoall(v), sendrecv, gather,
// scatter. It solves a maximum concurrent flow and turns the flow into a schedule. Each part may travel over
// several routes at once, so that the busiest link takes as little time as possible. docs/engines/flow.md.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine FlowEngine();

}  // namespace xccl
