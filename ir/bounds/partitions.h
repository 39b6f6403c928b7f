// Partitions of a machine into blocks, for bounds that count how often bytes pass from block to block
// (docs/ir.md, Lower bounds).
#pragma once

#include <vector>

#include "ir/bounds/bound.h"
#include "ir/bounds/node_cuts.h"
#include "ir/collective.h"
#include "topologies/topology.h"

namespace xccl {

// Partitions of a machine into blocks that hold all GPUs and all nodes that copy or sum. They are: every GPU
// alone; every host; the groups that faster links join; and, if all GPUs are members, the partition with the
// least bandwidth out of its blocks ÷ (blocks - 1). Newton's method finds the last one, with Dilworth's
// truncation in each step (Cunningham 1985); a block's bandwidth there is that of the least cut around it.
// Plain switches and NICs then go to the side that makes the cut around a block least.
std::vector<NodeGroups> Partitions(const Topology& topology, const Collective& collective,
                                   BoundEffort effort);

}  // namespace xccl
