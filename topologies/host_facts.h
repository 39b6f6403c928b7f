// A reader's knowledge of a machine of one host beyond its Topology. --hosts chooses and joins NICs by it
// (families/join_hosts.h). Nodes that are not mentioned have the defaults.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "base/ids.h"

namespace xccl {

struct NicFacts {
  bool gdr = true;                     // can read and write the memory of GPUs
  bool software = false;               // an interface of containers or of a tunnel, without a PCI device
  std::optional<int32_t> rail, plane;  // the parts of the network that it is joined to; absent: not stated
  uint64_t guid = 0;  // of its card, in the order of bytes in which NCCL wrote it; 0: not stated
};

struct HostFacts {
  std::map<NodeId, NicFacts> nics;
  // Switches that are inside one device: a NIC with several ports, a GPU with several ranks. Paths do not
  // count them.
  std::set<NodeId> inside_devices;
  // The NVSwitch that hosts of one NVLink domain share (GB200 NVL72).
  std::optional<NodeId> domain_nvswitch;
};

}  // namespace xccl
