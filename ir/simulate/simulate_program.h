// How long a Program takes: the same links and rules as ir/simulate/simulate.h, with what a Program adds: a
// threadblock runs one instruction at a time, passes follow one another, a sender waits for a free slot.
// With a machine model further: the launch; a message's flags take room on links and its receiver sees it a
// hop later; an instruction holds its threadblock for as long as that takes to move the bytes.
#pragma once

#include "base/status.h"
#include "ir/program.h"
#include "ir/simulate/simulate.h"
#include "topologies/topology.h"

namespace xccl {

// options.segment_bytes is not used: the program has its own. Errors: kInvalidInput when a threadblock can
// never go on, and where a connection has no path on this topology.
StatusOr<Simulation> SimulateProgram(const Program& program, const Collective& collective,
                                     const Topology& topology, const SimulateOptions& options);

}  // namespace xccl
