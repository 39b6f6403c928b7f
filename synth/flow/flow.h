// The engine for collectives that move data and copy nothing: alltoall(v), sendrecv, gather, scatter. Parts
// travel over several routes at once, so that the busiest link carries as little as possible on any machine:
// a maximum concurrent flow, made into a schedule. docs/engines/flow.md.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine FlowEngine();

}  // namespace xccl
