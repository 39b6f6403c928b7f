// What --hosts, --without-link and --degrade do to a topology.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// `hosts` copies named h0, h1, ... of a topology of one host. Every NIC of every copy is joined to one switch
// named "fabric", at the bandwidth of the NIC's own fastest link, 1.3 us away (TE-CCL's measured alpha for
// InfiniBand). Errors: several hosts, no NIC, too many nodes.
StatusOr<Topology> JoinHosts(const Topology& topology, int32_t hosts);

// Removes the links named by each "A->B" (all parallel ones of that direction; "A<->B" takes both
// directions), then multiplies the bandwidths of those named by each "A->B=F", 0 < F <= 1, rounded down to
// whole B/s. A and B are node references as in XML from the top. Errors: text that is none of this, a node or
// link that does not exist.
StatusOr<Topology> ModifyLinks(const Topology& topology, const std::vector<std::string>& without,
                               const std::vector<std::string>& degrades);

}  // namespace xccl
