// The demands of alltoall(v), sendrecv, gather and scatter by source, and bounds from cuts that a sweep
// over the nodes finds.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/collective.h"
#include "ir/sizes.h"
#include "topologies/topology.h"

namespace xccl {

struct Demands {
  struct To {
    int32_t node;
    double bytes;
    PartId part;
  };
  std::vector<int32_t> sources;     // nodes, ascending
  std::vector<std::vector<To>> to;  // by source
};

// The demands. A part without bytes at this size counts as `least_bytes`, or is left out if that is 0.
Demands DemandsOf(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes,
                  double least_bytes = 0);

// Keys of all nodes for sweeps, which cut between nodes with different keys. The first is document order.
// The others say how much nearer a node is to one landmark than to another, which slices a grid along its
// dimensions.
std::vector<std::vector<int32_t>> SweepKeys(const Topology& topology);

// The largest demand across ÷ bandwidth across, in seconds, over many cuts: between the first nodes and the
// rest by each of SweepKeys, around each host, and around each group of nodes that the fastest kinds of
// links join. Cost: demands × keys.
double SweepCuts(const Topology& topology, const Demands& demands);

}  // namespace xccl
