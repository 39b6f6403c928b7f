// Drawings of machines with switches: hosts side by side, and what joins them above or between.
#pragma once

#include "draw/layout/sketch.h"
#include "topologies/topology.h"

namespace xccl {

// One host: its GPUs in a row, switches that lead to NICs and CPUs above them, NICs and CPUs at the upper
// edge, switches that only join GPUs below. Without NICs and CPUs, switches are above.
Sketch HostSketch(const Topology& topology, HostId host, const std::vector<NodeId>& nodes);

// All of a machine. Cost: near linear in nodes and links.
Sketch ClusterSketch(const Topology& topology);

}  // namespace xccl
