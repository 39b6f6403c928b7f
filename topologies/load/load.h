// Loads a TOPOLOGY argument: a file (native XML, an NCCL/RCCL dump, the matrix of nvidia-smi topo -m, a
// fabric, or another tool's topology file, told apart by what they contain), a folder with the files of one
// fabric, the name of a library machine, or a short form such as
// torus:4x4x4@bandwidth=50GB/s,latency=500ns.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

StatusOr<Topology> LoadTopology(std::string_view topology, const LoadOptions& options = {});
// Likewise; several texts are files of one fabric (topologies/fabric/formats.h).
// Requires: at least one.
StatusOr<Topology> LoadTopology(std::span<const std::string> files, const LoadOptions& options = {});
// The names of the library's machines, sorted.
std::vector<std::string> LibraryNames();
// The names of those with at most so many nodes. No larger one is built to find out.
std::vector<std::string> LibraryNamesUpTo(int64_t most_nodes);

}  // namespace xccl
