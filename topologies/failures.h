// Machines with failed cables, drawn at random: what `compare --failures` and benches plan on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

struct Failure {
  Topology topology;                // without the links; everything else keeps its name
  std::vector<std::string> cables;  // "0<->1", or "0->1" for a link without a way back
};

// Takes away `cables` random cables: a link and, where there is one, a link of equal numbers the other way.
// Of draws that `serves` refuses (it may be empty) the next one is taken, up to 100.
// Errors: kInvalidInput where the machine has fewer cables; kLimit where no draw serves.
StatusOr<Failure> FailCables(const Topology& topology, int32_t cables, uint64_t seed,
                             const std::function<bool(const Topology&)>& serves);

}  // namespace xccl
