// The bandwidth bound: how long the links need for the bytes alone, at alpha zero. Which theorem serves which
// collective: docs/ir.md, lower bounds.
#pragma once

#include "ir/bounds/bound.h"
#include "ir/collective.h"
#include "ir/sizes.h"
#include "topologies/topology.h"

namespace xccl {

struct BandwidthBound {
  double ps = 0;
  BoundKind kind = BoundKind::kRelaxed;
};

// Requires: every need of the collective can be reached.
BandwidthBound BandwidthBoundOf(const Topology& topology, const Collective& collective,
                                const CollectiveSizes& sizes, BoundEffort effort);

// Its pieces, each valid by itself.

// One rank at a time: what it must take in or give away, over its links.
double DegreeBoundPs(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes);

// Allreduce of `bytes`, any plan: cuts in both directions, and partitions (bound_allreduce.cc).
BandwidthBound AllreduceBound(const Topology& topology, const Collective& collective, int64_t bytes,
                              BoundEffort effort);

// alltoall(v), sendrecv: concurrent flows of the parts from where they are to where they must be
// (bound_demand.cc).
BandwidthBound DemandBound(const Topology& topology, const Collective& collective,
                           const CollectiveSizes& sizes, BoundEffort effort);

// User-defined tables: hosts, sweeps over the machine, and how often bytes pass between GPUs or hosts
// (bound_tables.cc).
double TablesBoundPs(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes);

// User-defined tables, all of it: also for each destination, the cuts between it and what it needs
// (bound_custom.cc).
BandwidthBound CustomBound(const Topology& topology, const Collective& collective,
                           const CollectiveSizes& sizes, BoundEffort effort);

}  // namespace xccl
