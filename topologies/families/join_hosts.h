// The --hosts flag: copies of a host, joined by a switch.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// Makes `hosts` copies, named h0, h1, ..., of a topology of one host. Every NIC of every copy is joined to
// one switch named "fabric". The new links have the bandwidth of the NIC's fastest link and a latency of
// 1.3 us (TE-CCL's measured alpha for InfiniBand). Errors: several hosts, no NIC, too many nodes.
StatusOr<Topology> JoinHosts(const Topology& topology, int32_t hosts);

}  // namespace xccl
