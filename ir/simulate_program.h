// How long a Program takes: the same links and rules as ir/simulate.h, with what a Program adds: a
// threadblock runs one instruction at a time, passes follow one another, a sender waits for a free slot.
#pragma once

#include "base/status.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "ir/simulate.h"
#include "topologies/topology.h"

namespace xccl {

// `paths[i]` serves the i-th connection in order of (src, dst, channel): taken from the schedule that was
// lowered. Errors: kInvalidInput when a threadblock can never go on.
StatusOr<Simulation> SimulateProgram(const Program& program, const Schedule& schedule,
                                     const Collective& collective, const Topology& topology,
                                     const SimulateOptions& options);

}  // namespace xccl
