// Partitions of a machine into blocks, for bounds that count how often bytes pass from block to block
// (docs/ir.md, Lower bounds).
#pragma once

#include <vector>

#include "ir/bounds/bound.h"
#include "ir/bounds/node_cuts.h"
#include "ir/collective.h"
#include "topologies/topology.h"

namespace xccl {

// Partitions whose blocks hold all GPUs and all nodes that copy or sum. These are tried: every GPU alone;
// every host; what the faster links join; and, where all GPUs are members, the one with the least bandwidth
// out of its blocks ÷ (blocks - 1). For that one Newton's method takes steps of Dilworth's truncation
// (Cunningham 1985), where a block's bandwidth is that of the least cut around it. Switches that only pass on
// and NICs then go to the side that makes the cut around a block least.
std::vector<NodeGroups> Partitions(const Topology& topology, const Collective& collective,
                                   BoundEffort effort);

}  // namespace xccl
