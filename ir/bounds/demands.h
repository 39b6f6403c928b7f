// The demands of alltoall(v), sendrecv, gather and scatter by source, and bounds from cuts that are
// quick to list.
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

// The largest demand across ÷ bandwidth across, in seconds, over many cuts: around each GPU, each host and
// each group of nodes that the faster links join, and along each of SweepKeys. Cost: demands × cuts.
double QuickCuts(const Topology& topology, const Demands& demands);

}  // namespace xccl
