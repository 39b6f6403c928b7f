// A fabric of one file or several, with the flags that say what stands at its ends. Only load.cc needs this
// header.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "topologies/fabric/formats.h"
#include "topologies/fabric/match_nics.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

// Loads a machine that a user named: a file, a short form, or one of the library.
using LoadHostKind = std::function<StatusOr<HostKind>(const std::string& name)>;

// `name` stands for all files in messages; its stem is the topology's. Reads the options host_kinds,
// hosts_file, job, nic_rate and nvlink_domain. Errors: kInvalidInput; kUsage for a flag's text.
StatusOr<Topology> LoadFabric(std::span<const FabricFile> files, std::string_view name,
                              const LoadOptions& options, const LoadHostKind& load_kind);

}  // namespace xccl
