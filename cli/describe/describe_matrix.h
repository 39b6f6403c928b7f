// How the GPUs of one host reach each other, as `nvidia-smi topo -m` shows it: a part of DescribeText.
#pragma once

#include <span>
#include <string>

#include "topologies/topology.h"

namespace xccl {

// One line a GPU and one column a GPU, then the meaning of what the cells say. Cells: GB/s over direct links,
// or what the widest path passes: SW, PIX, PXB, PHB, SYS, NET; "-": only other GPUs.
std::string GpuMatrix(const Topology& topology, std::span<const Rank> ranks);

}  // namespace xccl
