// The topology files of other tools: one table of formats, each told by its content and read into a Topology.
#pragma once

#include <string_view>

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

// True if the text has the form of one of the formats.
bool IsPeerTopology(std::string_view text);
// `file` opens messages; its stem names the topology. Errors: kInvalidInput "FILE: ..." or
// "FILE:LINE:COLUMN: ...", with the flag that gives what the file leaves out. Requires: IsPeerTopology(text).
StatusOr<Topology> ReadPeerTopology(std::string_view text, std::string_view file, const LoadOptions& options);

}  // namespace xccl
