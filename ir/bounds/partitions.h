// Partitions of a machine into blocks, for bounds that count how often bytes pass from block to block
// (docs/ir.md, Lower bounds).
#pragma once

#include <vector>

#include "ir/bounds/bound.h"
#include "ir/bounds/node_cuts.h"
#include "ir/collective.h"
#include "topologies/topology.h"

namespace xccl {

// Returns partitions of a machine into blocks. The blocks hold all GPUs and all nodes that copy or sum. The
// partitions are:
// - every GPU alone; every host; the groups that faster links join;
// - if all GPUs are members and only GPUs copy, the partition with the least bandwidth out of its blocks ÷
//   (blocks - 1). Newton's method finds it, with Dilworth's truncation in each step (Cunningham 1985). The
//   bandwidth of a block is then that of the least cut around it.
// - variants of the partitions above in which plain switches and NICs go to the side that makes the cut
//   around a block least.
std::vector<NodeGroups> Partitions(const Topology& topology, const Collective& collective,
                                   BoundEffort effort);

// Returns the seconds per byte of an allreduce that a partition proves (bound_allreduce.cc). Requires that
// the blocks hold all GPUs. Returns 0 if fewer than two blocks have members, or if a node outside the blocks
// can copy or sum.
double PartitionSeconds(const Topology& topology, const Collective& collective, const NodeGroups& block_of);

}  // namespace xccl
