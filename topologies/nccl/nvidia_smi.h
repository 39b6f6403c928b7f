// A Topology from what `nvidia-smi topo -m` prints: a matrix of link classes between GPUs and NICs. It has no
// bandwidths; those come from NVLink counts and PCIe generations (nccl_constants.h), and its PCIe tree is the
// smallest that gives each pair its class.
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
  std::map<std::string, int64_t> nic_bytes_per_s;  // by name, where known
  CpuModel cpu;                                    // for the links between NUMA nodes
};

// NV# counts that add up to more links than the GPU has lead to an NVSwitch. Of the options only gpu_arch is
// read. Errors: kInvalidInput "nvidia-smi topo -m: ...".
StatusOr<Topology> ReadNvidiaSmi(const NvidiaSmiTexts& texts, const LoadOptions& options = {});

}  // namespace xccl
