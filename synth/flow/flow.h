// What is moved and not copied (alltoall(v), sendrecv, gather, scatter), over several routes at once, such
// that the busiest link carries no more than it must on any machine: the maximum concurrent flow as a
// schedule. docs/engines/flow.md.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine FlowEngine();

}  // namespace xccl
