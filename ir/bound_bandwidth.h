// The bandwidth bound: how long the links need for the bytes alone, at alpha zero. Which theorem serves which
// collective: docs/ir.md, bounds.
#pragma once

#include "ir/bound.h"
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

// The part of it that looks at one rank at a time: what a rank must take in or give away, over its links.
double DegreeBoundPs(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes);

}  // namespace xccl
