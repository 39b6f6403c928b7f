// Cuts of a machine: sets of nodes with much supply for the bandwidth of their outgoing links. Bounds of
// one-to-all, all-to-all and many-to-one collectives are the worst cut for different supplies and sinks
// (docs/ir.md, Lower bounds).
#pragma once

#include "base/graph/ratio_cut.h"
#include "topologies/topology.h"

namespace xccl {

// The problem of FindRatioCut without supplies and sinks. Its nodes are the machine's nodes and its arcs the
// machine's links, with bandwidths in bytes per second; `reversed` turns every link.
RatioCutProblem CutsOf(const Topology& topology, bool reversed = false);

}  // namespace xccl
