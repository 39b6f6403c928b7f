// Makes a Topology of what `nvidia-smi topo -m` prints: a matrix of link classes between GPUs and NICs. The
// matrix states no bandwidths: they come from NVLink counts and PCIe generations (nccl_constants.h). The PCIe
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
  std::string name;    // the topology's name
  std::string matrix;  // nvidia-smi topo -m
  // nvidia-smi --query-gpu=index,compute_cap,pcie.link.gen.max,pcie.link.width.max --format=csv,noheader; a
  // line may be missing or hold [N/A].
  std::string gpus;
  std::map<std::string, int64_t> nic_bytes_per_s;  // by name; only the known ones
  CpuModel cpu;                                    // for the links between NUMA nodes
};

// A GPU whose NV# counts add up to more links than it has is joined to an NVSwitch. The options read are
// gpu_arch, pcie_gen and nic_rate, for devices whose values the texts do not state. Where a flag is missing,
// too, a GPU has 12GB/s of PCIe and a NIC 12GB/s, with a warning. Errors: kInvalidInput "nvidia-smi topo -m:
// ..."; kUsage for a flag that makes no sense.
StatusOr<Topology> ReadNvidiaSmi(const NvidiaSmiTexts& texts, const LoadOptions& options = {});

// True if the text has a row of the matrix, maybe behind the prefix that a launcher puts before each line.
bool IsNvidiaSmiMatrix(std::string_view text);
// The matrix alone, as saved or logged. `file` opens messages; its stem names the topology. Errors: those of
// ReadNvidiaSmi; kInvalidInput "FILE: nvidia-smi topo -m: ..." that lists the flags without which the machine
// is not known.
StatusOr<Topology> ReadNvidiaSmiMatrix(std::string_view text, std::string_view file,
                                       const LoadOptions& options = {});

}  // namespace xccl
