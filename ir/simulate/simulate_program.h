// Computes how long a Program takes, on the same links and by the same rules as ir/simulate/simulate.h. A
// threadblock runs one instruction at a time, passes follow one another, and a sender waits for a free
// slot. A machine model adds the launch and the room that flags take on links, and gives the bandwidths that
// links reach. With it a receiver sees a message one hop time later; an instruction holds its threadblock for
// the cost of a message and the time to move its bytes; and an instruction that waits for another threadblock
// goes on one hand-off later.
#pragma once

#include "base/status.h"
#include "ir/program.h"
#include "ir/simulate/simulate.h"
#include "topologies/topology.h"

namespace xccl {

// Ignores options.segment_bytes, since the program has its own. Requires: rules P1 to P4 of
// ir/verify/verify_program.h hold on this topology, but a connection may have no path. Errors: kInvalidInput
// for a connection without a path, and if a threadblock waits forever; kLimit if the deadline passes.
StatusOr<Simulation> SimulateProgram(const Program& program, const Collective& collective,
                                     const Topology& topology, const SimulateOptions& options);

}  // namespace xccl
