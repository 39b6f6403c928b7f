// Turns a fractional packing of tree pairs into the trees of an allreduce. A pair consists of a tree that
// sums its share of the buffer up and a tree that copies the sum down. If switches reduce or multicast, one
// transfer serves the arcs that meet at a switch, with exceptions (tree_pairs.cc). Linear in the arcs.
#pragma once

#include <span>

#include "synth/common/allreduce_trees.h"
#include "synth/common/fractional_packing.h"
#include "topologies/topology.h"

namespace xccl {

// Returns the pairs with integer weights. Leaves out pairs whose share rounds to zero. Requires a packing of
// pairs with these roots.
AllreduceTrees RoundToAllreduceTrees(const FractionalPacking& packing, std::span<const Rank> roots,
                                     const Topology& topology);

}  // namespace xccl
