// Reads the topology files of SimAI (gen_Topo_Template.py of aliyun/SimAI) and of ns-3 back ends that have
// the same body (ASTRA-sim, HPCC): a line of counts, the ids of the switches, and a line "src dst rate
// latency error_rate" for each cable. SimAI's counts are `nodes gpus_per_server nvswitches other_switches
// links gpu_type`, the others' are `nodes switches links`.
#pragma once

#include <string_view>

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

bool IsSimai(std::string_view text);
// Nodes that are no switches are GPUs: gpus_per_server to a host, or a host each where the file has no such
// count. Errors: kInvalidInput "FILE:LINE:COLUMN: ...".
StatusOr<Topology> ReadSimai(std::string_view text, std::string_view file, const LoadOptions& options);

}  // namespace xccl
