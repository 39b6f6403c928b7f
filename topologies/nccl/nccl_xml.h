// Reads NCCL's and RCCL's topology dumps (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE: <system version="1"> and
// "2"), as found in the wild, into a Topology. GPUs are in the order of their ranks, all NVSwitches are one
// switch, each net is a NIC node and each NUMA node a CPU node. Bandwidths are NCCL's own
// (nccl_constants.h). Flags supply what a file leaves out; contradictions become warnings. Format and
// rules: docs/topologies.md.
#pragma once

#include <string_view>

#include "base/status.h"
#include "topologies/host_facts.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

// True if the root element is one that NCCL writes, <system> or <graphs>, whatever stands before it. Reads no
// further than its name.
bool IsNcclXml(std::string_view text);

// `file` is the name shown in errors; its stem names the topology. The only options read are gpu_arch,
// gpus_per_switch and gpu_busids. Errors: kInvalidInput with file:line:column, and a hint where a flag helps;
// kUsage for a flag that makes no sense. Fills in the facts, if asked for.
StatusOr<Topology> ReadNcclXml(std::string_view text, std::string_view file, const LoadOptions& options = {},
                               HostFacts* facts = nullptr);

}  // namespace xccl
