// How the GPUs of one host reach each other, as `nvidia-smi topo -m` shows it: a part of DescribeText.
#pragma once

#include <span>
#include <string>

#include "topologies/topology.h"

namespace xccl {

// One line and one column per GPU, then the meaning of the cells. A cell is GB/s over direct links, or what
// the widest path passes: SW, PIX, PXB, PHB, SYS, NET; "-" means only other GPUs.
std::string GpuMatrix(const Topology& topology, std::span<const Rank> ranks);

}  // namespace xccl
