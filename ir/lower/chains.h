// Pass "chains": trees of links written out as chains, since a connection has one rank at either end.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl::lowering {

// The chains from each source of a tree to each of its destinations, in the order of the path. The tree has
// one source or one destination. A chain is itself. Linear in what comes out, times log.
std::vector<std::vector<LinkId>> ChainsOf(const Topology& topology, std::span<const LinkId> tree);

// Guarantees the same outcome over chains alone: a multicast becomes a copy to each of its destinations, an
// in-switch reduction one from each of its sources, in the order of the path. A link of a tree is then used
// once for every leaf behind it. Linear in what comes out. Requires: a normalized schedule that verifies.
// Errors: kInvalidInput for an in-switch reduction that replaces the value at its destination, since its
// parts would have to be copied and added in one step.
StatusOr<Schedule> WithoutTrees(const Schedule& schedule, const Topology& topology);

}  // namespace xccl::lowering
