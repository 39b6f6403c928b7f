// Reads the network files of ASTRA-sim's analytical back ends (astra-sim/astra-network-analytical,
// input/*.yml; astra-sim, inputs/network/*.yml): YAML with four lists of one entry a dimension.
//   topology: [ Switch, Ring ]   npus_count: [ 8, 4 ]   bandwidth: [ 400, 50 ]   latency: [ 500, 2000 ]
// NPUs that differ in one dimension alone are a group: a Ring joins each to the next in both directions, with
// one cable between two; FullyConnected joins all pairs; a Switch joins each to a switch. NPU numbers count
// dimension 1 fastest. A bandwidth is that of each link in each direction, in GB/s of 2^30 bytes (the back
// end's NetworkFunction.cpp); a latency is that of each link in ns, so that a message over a Switch has two.
#pragma once

#include <string_view>

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

// Has the text the keys topology and npus_count at the start of lines?
bool IsAstraSimNetwork(std::string_view text);
// Where dimension 1 is the fastest of several, its groups are taken to be hosts, with a warning; else there
// is one host. Errors: kInvalidInput "FILE:LINE:COLUMN: ...".
StatusOr<Topology> ReadAstraSimNetwork(std::string_view text, std::string_view file,
                                       const LoadOptions& options);

}  // namespace xccl
