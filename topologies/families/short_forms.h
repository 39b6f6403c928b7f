// Short forms of families on the command line: torus:4x4x4@bandwidth=50GB/s,latency=500ns.
#pragma once

#include <string_view>

#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// True if a known family's name stands before the first colon.
bool IsShortForm(std::string_view text);
// Errors: "torus:4xa: torus: dims '4xa': expected ...". The topology's name is the text.
StatusOr<Topology> ReadShortForm(std::string_view text);

}  // namespace xccl
