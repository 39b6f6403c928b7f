// Trees of links written out as chains: a program's connections have one rank at either end.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl::lowering {

// From each source of a tree to each of its destinations, in the order of the path; the tree has one of
// either. A chain is itself. Linear in what comes out, times log.
std::vector<std::vector<LinkId>> ChainsOf(const Topology& topology, std::span<const LinkId> tree);

// Does any transfer's path branch or join?
bool HasTrees(const Schedule& schedule, const Topology& topology);

// The same outcome over chains alone: a multicast becomes a copy to each of its destinations, an in-switch
// reduction one from each of its sources, in the order of the path. Links that a tree uses once are then used
// as often as it has leaves behind them. Linear in what comes out. Requires: a normalized schedule that
// verifies. Errors: kInvalidInput for an in-switch reduction that replaces what is there, since its parts
// would have to be copied and added in one step.
StatusOr<Schedule> WithoutTrees(const Schedule& schedule, const Topology& topology);

}  // namespace xccl::lowering
