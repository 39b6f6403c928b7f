// Which network devices of its hosts a connection goes over, as the plan has it: the topology's NICs on its
// path, numbered within their hosts in the order of the topology.
#pragma once

#include <span>
#include <vector>

#include "ir/program.h"
#include "runtime/transport/wiring.h"
#include "topologies/topology.h"

namespace xccl {

// By connection of the program. A connection whose path has no NIC of a host gets that host's first NIC.
std::vector<Rails> RailsOf(const Program& program, const Topology& topology);
// Sets the rails in the wiring, which has all connections of the program. Where programs disagree, the last
// one set wins.
void SetRails(const Program& program, std::span<const Rails> rails, Wiring& wiring);

}  // namespace xccl
