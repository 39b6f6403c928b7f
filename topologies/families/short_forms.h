// Short forms of families on the command line: torus:4x4x4@bandwidth=50GB/s,latency=500ns.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// The texts that may be written, with letters for numbers, in the order of FamilyNames(): "ring:N",
// "mesh:AxB".
std::vector<std::string_view> ShortForms();
// The short form of a family with its arguments, and one with numbers: {"ring:N", "ring:16"}. Empty for
// another name.
std::pair<std::string_view, std::string_view> ShortFormOf(std::string_view family);

// True if a known family's name stands before the first colon.
bool IsShortForm(std::string_view text);
// Errors: "torus:4xa: torus: dims '4xa': expected ...". The topology's name is the text.
StatusOr<Topology> ReadShortForm(std::string_view text);

}  // namespace xccl
