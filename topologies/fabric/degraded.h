// Tells degraded cables by cables alike that are faster, for files that print the rates of ports alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topologies/fabric/fabric.h"

namespace xccl {

// Sets full_bandwidth_bytes_per_s of the cables that are slower than
// - another cable between the same two switches, or
// - nine tenths or more, and at least nine, of the cables alike: between switches of the same two models, or
//   from adapters of one model and device name ("mlx5_3" of each host). A host with several adapters that are
//   all slower than adapters alike is cabled so.
// `switch_models` and `adapter_models` are numbers by which alike devices are told; 0 is an unknown model,
// and its cables have none alike but parallel ones. Returns the cables that it set, ascending. Linear in the
// cables.
std::vector<int32_t> MarkDegraded(Fabric& fabric, std::span<const int32_t> switch_models,
                                  std::span<const int32_t> adapter_models);

}  // namespace xccl
