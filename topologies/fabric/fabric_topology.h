// From the wiring that an operator's file gives to a machine: hosts at the ends of the fabric, switches, and
// cables as duplex links. What the file leaves out comes from the options; what is guessed is a warning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topologies/fabric/fabric.h"
#include "topologies/fabric/match_nics.h"
#include "topologies/topology.h"

namespace xccl {

// Hosts of one kind. `hosts` is a host list or a pattern with * and ?; empty: all.
struct HostRule {
  std::string hosts;
  size_t kind = 0;
};

struct FabricOptions {
  std::vector<HostKind> kinds;  // no rule: an adapter stands for one GPU beside its NIC
  std::vector<HostRule> rules;  // the first that names a host decides; a host that none names is left out
  std::optional<std::vector<std::string>> listed;  // only these hosts, in this order
  std::optional<std::string> job;                  // a host list: only these hosts, in this order
  std::optional<int64_t> nic_bytes_per_s;          // of NICs whose rate neither file nor kind states
  std::optional<int32_t> nvlink_domain;            // GPUs that share an NVSwitch, host by host in order
};

// Ranks are host by host: in the order of the job, else of the list, else of the hosts' names. A link between
// NIC and switch has the cable's rate and 1.3 us, a link between switches 0.45 us. A cable between switches
// without a rate is as fast as the hosts under it are together, divided among the cables up. With a job,
// switches that its hosts do not need are left out. Hosts of one domain share the NVSwitch that a dump says
// is a domain's. `file` names the fabric in messages, its stem the topology. Errors: kInvalidInput naming a
// host, a kind without NICs, or a flag that states the rate; too many nodes; kUsage for the job's text.
StatusOr<Topology> FabricTopology(const Fabric& fabric, std::string_view file, const FabricOptions& options);

}  // namespace xccl
