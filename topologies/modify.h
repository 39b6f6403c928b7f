// The --without-link and --degrade flags.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// Removes the links that each "A->B" names: all parallel links in that direction, or in both for "A<->B".
// Then multiplies the bandwidths of the links named by each "A->B=F", 0 < F <= 1, rounded down to whole
// B/s. A and B are node references as in XML, from the top. Errors: malformed text; no such node or link.
StatusOr<Topology> ModifyLinks(const Topology& topology, const std::vector<std::string>& without,
                               const std::vector<std::string>& degrades);

}  // namespace xccl
