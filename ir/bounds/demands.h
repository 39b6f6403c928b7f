// What alltoall(v), sendrecv, gather and scatter move, by source, and the cuts that a sweep over the nodes
// finds.
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

// What must move. A part that has no bytes at this size counts as `least_bytes`, or not at all where that is
// 0.
Demands DemandsOf(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes,
                  double least_bytes = 0);

// Numbers for all nodes by which to sweep over a machine, cutting between nodes of different ones: document
// order, and by how much nearer a node is to one landmark than to another, which slices a grid along its
// dimensions.
std::vector<std::vector<int32_t>> SweepKeys(const Topology& topology);

// The largest demand across ÷ bandwidth across, in seconds, over the cuts between the first nodes and the
// rest by SweepKeys, and around each host and each group of nodes that links of one of the highest bandwidths
// join. Cost: demands × keys.
double SweepCuts(const Topology& topology, const Demands& demands);

}  // namespace xccl
