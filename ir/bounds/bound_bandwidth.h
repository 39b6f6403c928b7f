// The bandwidth bound: the time that the links need for the bytes alone, at alpha zero. docs/ir.md, Lower
// bounds, says which theorem serves which collective.
#pragma once

#include <vector>

#include "ir/bounds/bound.h"
#include "ir/bounds/node_cuts.h"
#include "ir/bounds/orbits.h"
#include "ir/collective.h"
#include "ir/sizes.h"
#include "topologies/topology.h"

namespace xccl {

struct BandwidthBound {
  double ps = 0;
  BoundKind kind = BoundKind::kRelaxed;
  std::vector<NodeGroups> partitions = {};  // only for allreduce: all partitions that were tried
};

// Returns the bandwidth bound of any collective. Requires that CheckReachable() is OK.
BandwidthBound BandwidthBoundOf(const Topology& topology, const Collective& collective,
                                const CollectiveSizes& sizes, BoundEffort effort, Orbits& orbits);

// The most members of a broadcast, reduce or allreduce for which FindRatioCut() searches a cut before each
// member. If there are more members, OnePartSeconds() gives a quicker bound.
inline constexpr int32_t kMostCutRanks = 1 << 15;

// Returns a bound in seconds on a broadcast, reduce or allreduce of `bytes` bytes: the longest time that the
// bytes take into or out of a GPU, a host or a group of nodes that fast links join. Linear in the machine.
double OnePartSeconds(const Topology& topology, const Collective& collective, int64_t bytes);

// The three functions below give the bound of some collectives; BandwidthBoundOf() calls them.

// Returns the bound of an allreduce of `bytes` bytes, from cuts in both directions and partitions
// (bound_allreduce.cc).
BandwidthBound AllreduceBound(const Topology& topology, const Collective& collective, int64_t bytes,
                              BoundEffort effort);

// Returns the bound of alltoall(v) or sendrecv, from concurrent flows of the parts from their holders to
// their destinations (bound_demand.cc).
BandwidthBound DemandBound(const Topology& topology, const Collective& collective,
                           const CollectiveSizes& sizes, BoundEffort effort, Orbits& orbits);

// Returns the bound of a user-defined table (bound_custom.cc), from cuts around GPUs and hosts, from sweeps
// over the machine, from the number of times that bytes pass between GPUs or hosts, and from the worst cut
// before each destination.
BandwidthBound CustomBound(const Topology& topology, const Collective& collective,
                           const CollectiveSizes& sizes, BoundEffort effort);

}  // namespace xccl
