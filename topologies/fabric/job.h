// The hosts of a job taken out of a machine, with the switches that they need.
#pragma once

#include <cstdint>
#include <span>
#include <string>
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

// The number of switches at the NICs of hosts, or at their GPUs where there is no NIC.
int32_t NumLeaves(const Topology& topology);

// As many hosts as the job has, each with as many ranks as its first, under few leaves: from one set of
// leaves if one has enough hosts, else from the largest sets. Of equal choices the one with more of the job's
// own hosts is taken. In the machine's order. Errors: those of TakeJob.
StatusOr<std::vector<std::string>> CloserHosts(const Topology& topology, std::string_view hosts);

}  // namespace xccl
