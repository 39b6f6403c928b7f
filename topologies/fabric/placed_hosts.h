// The hosts of a fabric as nodes of a machine, before cables join them. Only fabric_topology.cc needs this
// header.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "topologies/fabric/fabric_hosts.h"
#include "topologies/fabric/fabric_topology.h"

namespace xccl {

// An end of a cable that is a NIC.
struct PlacedNic {
  NodeId node;
  int64_t bandwidth_bytes_per_s = 0;  // its own; 0: not known
};

struct PlacedHosts {
  TopologySpec spec;                         // hosts, nodes, the links inside, warnings
  std::vector<std::vector<PlacedNic>> nics;  // by adapter; empty: of no host that is placed
};

// Each port is a GPU beside its NIC; ports of one device have one. Errors: a rate that nothing states.
StatusOr<PlacedHosts> PlaceAdapters(const Fabric& fabric, std::string_view file,
                                    std::span<const FabricHost> hosts, const FabricOptions& options);

// Copies of the kinds. `chosen`: the user named these hosts, so that none is left out for few NICs.
StatusOr<PlacedHosts> PlaceKinds(const Fabric& fabric, std::string_view file,
                                 std::span<const FabricHost> hosts, const FabricOptions& options,
                                 bool chosen);

}  // namespace xccl
