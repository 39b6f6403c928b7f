// The flags that change a topology: --hosts with --rails, --fabric and --nvlink-domain, --without-link,
// --degrade.
#pragma once

#include "base/status.h"
#include "topologies/host_facts.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

// Joins copies of the topology where --hosts says so (join_hosts.h). Then removes the links that each "A->B"
// of --without-link names: all parallel links in that direction, or in both for "A<->B". Then multiplies the
// bandwidths of the links named by each "A->B=F", 0 < F <= 1, rounded down to whole B/s. A and B are node
// references as in XML, from the top. Errors: those of JoinHosts; malformed text; no such node or link.
StatusOr<Topology> Modify(Topology topology, const LoadOptions& options, const HostFacts& facts = {});

}  // namespace xccl
