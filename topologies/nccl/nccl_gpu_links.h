// The links of GPUs beside PCIe in a dump: NVLink, xGMI and C2C. In go the settled tree and the GPUs that are
// ranks; out comes what each GPU is joined to, in items of the tree. Only nccl_xml.cc needs this header.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topologies/nccl/nccl_bus_index.h"
#include "topologies/nccl/nccl_tree.h"

namespace xccl {

inline constexpr std::string_view kHiddenNvswitch = "*";

struct NcclGpuLinks {
  // All NVSwitches of a host count as one switch. Hosts with Arm CPUs (GB200 NVL72) share the NVSwitches
  // whose bus ids the file hides.
  struct Nvswitch {
    std::map<int32_t, int64_t> ports;  // item -> bandwidth, the same both ways
    bool nvls = true;                  // multicasts and reduces
  };
  BusIndex buses;
  std::map<std::pair<int32_t, int32_t>, int64_t> between;  // items -> bandwidth in that direction
  std::map<std::string, Nvswitch> switches;                // by the host that it is in, or kHiddenNvswitch
  std::map<int32_t, int64_t> to_cpu;                       // item -> bandwidth to the CPU above it
};

// A link ends at a GPU, or at the bridge above the ranks that share a GPU. Links beyond the number that a GPU
// has are reduced to that number, and links that lead nowhere are left out, both with a warning. GPUs without
// links, where GPUs of their architecture have some, are only warned of.
NcclGpuLinks ReadNcclGpuLinks(NcclSystem& system, const std::vector<int32_t>& gpus);

}  // namespace xccl
