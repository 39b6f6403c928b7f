// Which network devices of its hosts a connection goes over, as the plan has it: the topology's NICs on its
// path, numbered within their hosts in the order of the topology.
#pragma once

#include <span>
#include <vector>

#include "ir/program.h"
#include "runtime/transport/network.h"
#include "runtime/transport/wiring.h"
#include "topologies/topology.h"

namespace xccl {

// By connection of the wiring. Connections whose path has no NIC of a host, and those that the program does
// not have, get that host's first.
std::vector<Rails> RailsOf(const Program& program, const Topology& topology, const Wiring& wiring);

}  // namespace xccl
