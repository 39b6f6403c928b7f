// Descriptions of a machine for people and for other programs. Each text ends with a line break; the same
// topology gives the same bytes.
#pragma once

#include <string>

#include "topologies/topology.h"

namespace xccl {

// The text has name, bandwidth of a GPU, distances and counted kinds of links. Per kind of host it has the
// GPU-to-GPU matrix (up to 16 GPUs), switches, NICs and CPUs; then come the fabric and warnings. The cost is
// near linear. The flow between two halves of the ranks and the largest distance are left out where they
// would take long.
std::string DescribeText(const Topology& topology);
// {"name", "ranks", "hosts", "nodes", "links", "warnings"}: counts, and the warnings as a list of texts.
std::string DescribeJson(const Topology& topology);
// A Graphviz graph, one cluster a host, a duplex cable as one edge, parallel links as one edge with a count.
std::string DescribeDot(const Topology& topology);

}  // namespace xccl
