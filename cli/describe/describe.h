// Descriptions of a machine for people and for other programs. Each text ends with a line break; the same
// topology gives the same bytes.
#pragma once

#include <span>
#include <string>

#include "topologies/topology.h"

namespace xccl {

// The text has name, bandwidth of a GPU, distances and counted kinds of links. Per kind of host it has the
// GPU-to-GPU matrix (up to 16 GPUs), switches, NICs and CPUs; then comes the fabric. The cost is
// near linear. The flow between two halves of the ranks and the largest distance are left out where they
// would take long.
std::string DescribeText(const Topology& topology);

// A part of DescribeText: how the GPUs of one host reach each other, as `nvidia-smi topo -m` shows it.
// One line and one column per GPU, then the meaning of the cells. A cell is GB/s over direct links, or the
// kind of node that the widest path passes: SW, PIX, PXB, PHB, SYS, NET; "-" means only other GPUs.
std::string GpuMatrix(const Topology& topology, std::span<const Rank> ranks);

}  // namespace xccl
