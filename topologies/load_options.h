// The flags of every command that takes a TOPOLOGY.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace xccl {

struct LoadOptions {
  std::optional<std::string> gpu_arch;     // --gpu-arch: sm90, gfx942; where it is not stated
  std::optional<int32_t> gpus_per_switch;  // --gpus-per-switch: for dumps without GPU-class devices
  std::optional<std::string> gpu_busids;   // --gpu-busids: the GPUs of a dump that does not tell them
  std::optional<int32_t> pcie_gen;         // --pcie-gen: 1 to 6; of the GPUs of a matrix of nvidia-smi
  std::optional<std::string> nic_rate;     // --nic-rate: 400Gbit/s; of the NICs that a matrix or a fabric has
  std::optional<std::string> link;         // --link: what a peer's topology file does not say of its links
  std::optional<int32_t> hosts;            // --hosts: this many copies of one host, joined by a fabric
  bool rails = false;                      // --rails: one switch joins NIC i of every host
  bool no_rails = false;                   // --no-rails: one fabric joins all NICs. Neither: see JoinHosts
  std::optional<std::string> fabric;       // --fabric: the attributes of <fabric>, name=value,name=value
  std::optional<int32_t> nvlink_domain;    // --nvlink-domain: copies share an NVSwitch up to so many GPUs
  std::vector<std::string> host_kinds;     // --host: DUMP or PATTERN=DUMP, at the ends of a fabric
  std::optional<std::string> hosts_file;   // --hosts-file: the hosts of a fabric that count, and their dumps
  std::optional<std::string> job;          // --job: gpu[001-016]; only these hosts
  bool plain_switches = false;             // --plain-switches: none multicasts or reduces
  std::vector<std::string> without_links;  // --without-link A->B, node references as in XML
  std::vector<std::string> degrades;       // --degrade A->B=F: bandwidth × F, 0 < F <= 1
};

}  // namespace xccl
