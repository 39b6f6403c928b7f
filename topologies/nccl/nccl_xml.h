// NCCL's and RCCL's topology dumps (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE: <system version="1"> and "2"), as
// they are found in the wild, become a Topology: GPUs in the order of their ranks, all NVSwitches as one
// switch, PCIe switches, one NIC node a net, one CPU node a NUMA node. Bandwidths are NCCL's own
// (nccl_constants.h). What a file leaves out comes from flags; what it contradicts is a warning.
// Format and rules: docs/topologies.md.
#pragma once

#include <string_view>

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

// Is the root element one that NCCL writes, <system> or <graphs>? Looks no further than its name.
bool IsNcclXml(std::string_view text);

// `file` is the name shown in errors; its stem names the topology. Of the options only gpu_arch and
// gpus_per_switch are read. Errors: kInvalidInput with file:line:column, and a hint where a flag helps;
// kUsage for a flag that makes no sense.
StatusOr<Topology> ReadNcclXml(std::string_view text, std::string_view file, const LoadOptions& options = {});

}  // namespace xccl
