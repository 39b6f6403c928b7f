// A machine for people and for other programs. Each text ends with a line break; the same topology gives the
// same bytes.
#pragma once

#include <string>

#include "topologies/topology.h"

namespace xccl {

// Name, bandwidth of a GPU, distances, counted kinds of links; per kind of host the GPU-to-GPU matrix (up to
// 16 GPUs), switches, NICs and CPUs, alike hosts once; the fabric; warnings. Near linear, but for the flow
// between two halves of the ranks and the largest distance, which are left out where they would take long.
std::string DescribeText(const Topology& topology);
// {"name", "ranks", "hosts", "nodes", "links", "warnings"}: counts, and the warnings as a list of texts.
std::string DescribeJson(const Topology& topology);
// A Graphviz graph, one cluster a host, a duplex cable as one edge, parallel links as one edge with a count.
std::string DescribeDot(const Topology& topology);

}  // namespace xccl
