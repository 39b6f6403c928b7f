// Reads a machine as GraphML, as networkx, yEd and others write it. docs/topologies.md lists the attributes.
#pragma once

#include <string_view>

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

bool IsGraphml(std::string_view text);
// Errors: kInvalidInput "FILE:LINE:COLUMN: ..." and those of GraphTopology.
StatusOr<Topology> ReadGraphml(std::string_view text, std::string_view file, const LoadOptions& options);

}  // namespace xccl
