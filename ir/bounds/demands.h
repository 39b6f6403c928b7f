// Demands of alltoall(v), sendrecv, gather and scatter, grouped by source, and bounds from cuts that are
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

// Returns the demands. A part of fewer than `least_bytes` bytes counts as `least_bytes`. Parts that still
// have 0 bytes are left out.
Demands DemandsOf(const Topology& topology, const Collective& collective, const CollectiveSizes& sizes,
                  double least_bytes = 0);

// Returns in seconds the largest demand ÷ bandwidth across a cut. Tries the cuts around each GPU, each host
// and each group of nodes that faster links join, and the cuts along each of SweepKeys(). Cost: demands ×
// cuts.
double QuickCuts(const Topology& topology, const Demands& demands);

}  // namespace xccl
