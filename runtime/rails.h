// Which network devices of its hosts a connection goes over, as the plan has it: the topology's NICs on its
// path, numbered within their hosts in the order of the topology.
#pragma once

#include <span>
#include <vector>

#include "ir/program.h"
#include "runtime/transport/wiring.h"
#include "topologies/topology.h"

namespace xccl {

// By the program's connections. Those whose path has no NIC of a host get that host's first.
std::vector<Rails> RailsOf(const Program& program, const Topology& topology);
// Gives them to the wiring, which has all connections of the program. Of programs that disagree the last
// wins.
void SetRails(const Program& program, std::span<const Rails> rails, Wiring& wiring);

}  // namespace xccl
