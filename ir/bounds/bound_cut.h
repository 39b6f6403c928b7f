// Cuts of a machine: sets of nodes with much supply for the bandwidth of their outgoing links. Bounds of
// one-to-all, all-to-all and many-to-one collectives are the worst cut for different supplies and sinks
// (docs/ir.md, Lower bounds).
#pragma once

#include "base/graph/ratio_cut.h"
#include "topologies/topology.h"

namespace xccl {

// The problem of FindRatioCut without supplies and sinks. Nodes are those of the machine and arcs its links,
// with bandwidths in bytes per second; `reversed` turns every link.
RatioCutProblem CutsOf(const Topology& topology, bool reversed = false);

}  // namespace xccl
