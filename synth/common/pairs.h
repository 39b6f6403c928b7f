// Pairs of trees, packed fractionally, as the trees of an allreduce. Each pair's first tree sums up its share
// of the buffer; its second copies the sum down. Where switches reduce or multicast, one transfer serves all
// arcs that meet there. Linear in the arcs.
#pragma once

#include <span>

#include "synth/common/allreduce_trees.h"
#include "synth/common/fractional_packing.h"
#include "topologies/topology.h"

namespace xccl {

// Requires: a packing of pairs with these roots. Pairs whose share rounds to nothing are left out.
AllreduceTrees WholePairs(const FractionalPacking& packing, std::span<const Rank> roots,
                          const Topology& topology);

}  // namespace xccl
