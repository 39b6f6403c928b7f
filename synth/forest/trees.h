// From trees between members to trees of paths: what was joined while relays were taken out is laid out
// again.
#pragma once

#include <vector>

#include "ir/collective.h"
#include "synth/common/packed_trees.h"
#include "synth/forest/network.h"
#include "synth/forest/pack.h"
#include "topologies/topology.h"

namespace xccl::forest {

// Every tree's arcs as links; GPUs on the way become tree nodes. A tree whose arcs go several ways falls into
// several; equal trees are joined, or with `single` cut into trees of weight 1. Uses up network.pieces.
PackedTrees LayOut(const Topology& topology, const Collective& collective, Network& network,
                   const std::vector<LogicalTree>& trees, bool single);

}  // namespace xccl::forest
