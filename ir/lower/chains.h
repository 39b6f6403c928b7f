// Pass "chains": replaces trees of links by chains. A connection joins two ranks, so it carries no tree.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl::lowering {

// Returns the chains of a tree, from each source to each destination, in the order of the tree's links. A
// tree has one source or one destination. A path that is a chain is its own only chain. Cost: O(n log n) in
// the links returned.
std::vector<std::vector<LinkId>> ChainsOf(const Topology& topology, std::span<const LinkId> tree);

// Returns a schedule that has the same result and only chains as paths. A multicast becomes a copy to each
// destination. An in-switch reduction becomes an addition from each source, in the order of the path. A link
// of a tree then carries one message for every leaf behind it. Linear in the transfers returned. Requires a
// normalized schedule that verifies. Errors: kInvalidInput if an in-switch reduction replaces the value at
// its destination, because chains would have to copy one addend and add the others in one step.
StatusOr<Schedule> WithoutTrees(const Schedule& schedule, const Topology& topology);

}  // namespace xccl::lowering
