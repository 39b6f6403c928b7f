// Machines of a size that can be chosen, for bench:scale.
#pragma once

#include <string>

#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// Takes what LoadTopology() takes, and
//   dgx-h100:HOSTS    hosts of 8 GPUs on rails of one switch each
//   rails:PODSxHOSTS  hosts of 8 GPUs, rails of leaves and spines in a pod, and a core of half the pods'
//                     bandwidth
//   nvl72:UNITS       units of 8 racks of 18 trays of 4 GPUs, 4 rails in a unit, a core as wide as they
// After "damaged:" the machine has 100 cables of switches less, and 3 hosts less.
StatusOr<Topology> ReadScaledMachine(const std::string& name);

}  // namespace xccl
