// What --hosts does to a topology.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// `hosts` copies named h0, h1, ... of a topology of one host. Every NIC of every copy is joined to one switch
// named "fabric", at the bandwidth of the NIC's own fastest link, 1.3 us away (TE-CCL's measured alpha for
// InfiniBand). Errors: several hosts, no NIC, too many nodes.
StatusOr<Topology> JoinHosts(const Topology& topology, int32_t hosts);

}  // namespace xccl
