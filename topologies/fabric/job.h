// The hosts of a job taken out of a machine, with the switches that they need.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// By node: is it in a host, or a switch on a shortest path between two switches that hosts are at? Such paths
// pass switches without a host alone. Cost: the switches at hosts × the links between switches.
std::vector<bool> NodesInUse(const TopologySpec& spec);

// Removes the other nodes, and the links at them.
void KeepNodes(const std::vector<bool>& kept, TopologySpec& spec);

// The machine of the hosts that a list such as gpu[001-016] names, in its order, and of the switches that are
// in use among them. Errors: kUsage "--job: ..." for the list; kInvalidInput for a host that is not there.
StatusOr<Topology> TakeJob(const Topology& topology, std::string_view hosts);

}  // namespace xccl
