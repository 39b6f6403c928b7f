// Pass "chains": writes trees of links out as chains. A connection has one rank at either end, so it carries
// no tree.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl::lowering {

// Returns the chains of a tree, from each source to each destination, in the order of the tree's links. A
// tree has one source or one destination. A path that is a chain has itself as its one chain. Cost: O(n log
// n) in the links returned.
std::vector<std::vector<LinkId>> ChainsOf(const Topology& topology, std::span<const LinkId> tree);

// Returns a schedule of the same outcome whose paths are chains. A multicast becomes a copy to each of its
// destinations, an in-switch reduction an addition from each of its sources, in the order of the path. A link
// of a tree is then used once for every leaf behind it. Linear in the transfers returned. Requires: a
// normalized schedule that verifies. Errors: kInvalidInput for an in-switch reduction that replaces the value
// at its destination: chains would have to copy one addend and add the rest in one step.
StatusOr<Schedule> WithoutTrees(const Schedule& schedule, const Topology& topology);

}  // namespace xccl::lowering
