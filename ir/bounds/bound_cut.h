// Cuts of a machine. A bad cut is a set of nodes that must send out much data over little bandwidth. The
// bounds of one-to-all, all-to-all and many-to-one collectives are the worst cut for different supplies and
// sinks (docs/ir.md, Lower bounds).
#pragma once

#include "base/graph/ratio_cut.h"
#include "topologies/topology.h"

namespace xccl {

// Returns a problem for FindRatioCut() without supplies and sinks. Its nodes are the machine's nodes. Its
// arcs are the machine's links, with bandwidths in bytes per second; `reversed` turns every link round.
RatioCutProblem CutsOf(const Topology& topology, bool reversed = false);

}  // namespace xccl
