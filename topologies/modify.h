// What --without-link and --degrade do to a topology.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// Removes the links named by each "A->B" (all parallel ones of that direction; "A<->B" takes both
// directions), then multiplies the bandwidths of those named by each "A->B=F", 0 < F <= 1, rounded down to
// whole B/s. A and B are node references as in XML from the top. Errors: text that is none of this, a node or
// link that does not exist.
StatusOr<Topology> ModifyLinks(const Topology& topology, const std::vector<std::string>& without,
                               const std::vector<std::string>& degrades);

}  // namespace xccl
