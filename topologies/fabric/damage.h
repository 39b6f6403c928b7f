// Damage that a fabric's file names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topologies/fabric/fabric.h"

namespace xccl {

// "FILE:LINE: damage: leaf1 port 3 to spine1 port 1 runs at 25GB/s of 50GB/s" for each degraded cable, and
// one text for the ports that are down.
std::vector<std::string> DamageOf(const Fabric& fabric, std::string_view file);

}  // namespace xccl
