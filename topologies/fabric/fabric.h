// The wiring between hosts as an operator's file gives it: switches, the adapters of hosts, and cables.
// Readers of formats fill it in (ibnetdiscover.h, slurm.h, ...); FabricTopology (fabric_topology.h) makes the
// machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace xccl {

struct FabricSwitch {
  std::string name;   // as the file has it; not always unique
  uint64_t guid = 0;  // 0: the file has none
  bool operator==(const FabricSwitch&) const = default;
};

// One port of a NIC, or all of a host's network where the file knows hosts alone (Slurm).
struct FabricAdapter {
  std::string host;          // "node1"; empty: the file does not tell
  std::string device;        // "mlx5_0", "HCA-1", "eth0"; empty: the file does not tell
  uint64_t guid = 0;         // of the port or the node; 0: the file has none
  uint64_t system_guid = 0;  // ports of one card or one host may share it; 0: the file has none
  bool operator==(const FabricAdapter&) const = default;
};

// One end of a cable: a port of a switch or an adapter.
struct FabricEnd {
  bool is_switch = true;
  int32_t index = 0;  // into Fabric::switches or Fabric::adapters
  int32_t port = 0;   // as printed on the device; 0: the file has none
  bool operator==(const FabricEnd&) const = default;
};

// One cable; parallel cables are several.
struct FabricCable {
  FabricEnd a, b;
  int64_t bandwidth_bytes_per_s = 0;       // each direction; 0: the file does not tell
  int64_t full_bandwidth_bytes_per_s = 0;  // what the ports could do, if the cable is degraded; else 0
  int32_t line = 0;                        // where the file says so, from 1; 0: no line
  bool operator==(const FabricCable&) const = default;
};

// Hosts that share NVLink (a rack of NVL72, a block of Slurm).
struct FabricDomain {
  std::string name;
  std::vector<std::string> hosts;
  bool operator==(const FabricDomain&) const = default;
};

struct Fabric {
  std::string format;  // "ibnetdiscover"
  std::vector<FabricSwitch> switches;
  std::vector<FabricAdapter> adapters;
  std::vector<FabricCable> cables;
  std::vector<FabricDomain> domains;
  int32_t down_ports = 0;             // ports that the file lists as down
  std::vector<std::string> warnings;  // "FILE:LINE: what was guessed or contradicts"
  bool operator==(const Fabric&) const = default;
};

}  // namespace xccl
