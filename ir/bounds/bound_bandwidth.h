// The bandwidth bound: the time that the links need for the bytes alone, at alpha zero. docs/ir.md, Lower
// bounds, says which theorem serves which collective.
#pragma once

#include <vector>

#include "ir/bounds/bound.h"
#include "ir/bounds/node_cuts.h"
#include "ir/collective.h"
#include "ir/sizes.h"
#include "topologies/topology.h"

namespace xccl {

struct BandwidthBound {
  double ps = 0;
  BoundKind kind = BoundKind::kRelaxed;
  std::vector<NodeGroups> partitions = {};  // allreduce: the blocks between which passes of bytes are counted
};

// Requires: every need of the collective can be met on this topology.
BandwidthBound BandwidthBoundOf(const Topology& topology, const Collective& collective,
                                const CollectiveSizes& sizes, BoundEffort effort);

// The bounds that it is made of, each valid by itself.

// An allreduce of `bytes` by any plan: cuts in both directions, and partitions (bound_allreduce.cc).
BandwidthBound AllreduceBound(const Topology& topology, const Collective& collective, int64_t bytes,
                              BoundEffort effort);

// alltoall(v), sendrecv: concurrent flows of the parts from their holders to their destinations
// (bound_demand.cc).
BandwidthBound DemandBound(const Topology& topology, const Collective& collective,
                           const CollectiveSizes& sizes, BoundEffort effort);

// User-defined tables: hosts, sweeps over the machine, the number of times that bytes pass between GPUs or
// hosts, and for each destination the cuts between it and what it needs (bound_custom.cc).
BandwidthBound CustomBound(const Topology& topology, const Collective& collective,
                           const CollectiveSizes& sizes, BoundEffort effort);

}  // namespace xccl
