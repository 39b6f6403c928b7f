// The one door for TOPOLOGY arguments: a file (native XML or an NCCL/RCCL dump, told apart by the root
// element), the name of a library machine, or a short form such as
// torus:4x4x4@bandwidth=50GB/s,latency=500ns.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// What every command with a TOPOLOGY takes as flags.
struct LoadOptions {
  std::optional<std::string> gpu_arch;     // --gpu-arch: sm90, gfx942; what an NCCL dump leaves out
  std::optional<int32_t> gpus_per_switch;  // --gpus-per-switch: for dumps without GPU-class devices
  std::optional<int32_t> hosts;            // --hosts: join this many copies of one host through a fabric
  std::vector<std::string> without_links;  // --without-link A->B, node references as in XML
  std::vector<std::string> degrades;       // --degrade A->B=F: bandwidth × F, 0 < F <= 1
};

StatusOr<Topology> LoadTopology(std::string_view topology, const LoadOptions& options = {});
// Library machines' names, sorted.
std::vector<std::string> LibraryNames();

}  // namespace xccl
