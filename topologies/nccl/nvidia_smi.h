// Makes a Topology of what `nvidia-smi topo -m` prints: a matrix of link classes between GPUs and NICs. It
// states no bandwidths; those come from NVLink counts and PCIe generations (nccl_constants.h). The PCIe
// tree is the smallest one that gives each pair its class.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/nccl/nccl_constants.h"
#include "topologies/topology.h"

namespace xccl {

struct NvidiaSmiTexts {
  std::string name;    // of the topology
  std::string matrix;  // nvidia-smi topo -m
  // nvidia-smi --query-gpu=index,compute_cap,pcie.link.gen.max,pcie.link.width.max --format=csv,noheader; a
  // line may be missing or hold [N/A].
  std::string gpus;
  std::map<std::string, int64_t> nic_bytes_per_s;  // by name; only the known ones
  CpuModel cpu;                                    // for the links between NUMA nodes
};

// A GPU whose NV# counts add up to more links than it has is joined to an NVSwitch. Of the options, only
// gpu_arch is read. Errors: kInvalidInput "nvidia-smi topo -m: ...".
StatusOr<Topology> ReadNvidiaSmi(const NvidiaSmiTexts& texts, const LoadOptions& options = {});

}  // namespace xccl
