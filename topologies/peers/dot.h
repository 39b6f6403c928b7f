// Reads a machine as Graphviz text, such as `xccl-synth topo --format dot` writes. Understood are graphs and
// digraphs, subgraphs, edge chains, ports, defaults of nodes and edges, and comments; labels in HTML are
// skipped. docs/topologies.md lists the attributes.
#pragma once

#include <string_view>

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

bool IsDot(std::string_view text);
// An edge of a graph, or of a digraph with dir=none or dir=both, is a link in each direction. A cluster with
// a label is the host of its nodes, with a warning, unless they have the attribute `host`. Errors:
// kInvalidInput "FILE:LINE:COLUMN: ..." and those of GraphTopology.
StatusOr<Topology> ReadDot(std::string_view text, std::string_view file, const LoadOptions& options);

}  // namespace xccl
