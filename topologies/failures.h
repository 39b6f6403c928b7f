// Machines with random failed cables, for `compare --failures` and benchmarks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

struct Failure {
  Topology topology;                // without the failed links; node names stay
  std::vector<std::string> cables;  // "0<->1", or "0->1" for a link without a reverse
};

// Removes `cables` random cables. A cable is a link and, where there is one, the reverse link with equal
// numbers. A draw that `serves` refuses is replaced by another, up to 100 draws; `serves` may be empty.
// Errors: kInvalidInput if the machine has fewer cables; kLimit if no draw serves.
StatusOr<Failure> FailCables(const Topology& topology, int32_t cables, uint64_t seed,
                             const std::function<bool(const Topology&)>& serves);

// Removes `cables` random cables, `count` times, and never alike: cables between the same two nodes with
// equal numbers are alike. Returns fewer failures where fewer exist that `serves` accepts, so that all
// failures of a cable are drawn at last; where there are over 10,000 choices of cables, the search ends after
// 100 draws in a row without another failure. Errors: those of FailCables.
StatusOr<std::vector<Failure>> FailCablesOften(const Topology& topology, int32_t cables, int32_t count,
                                               uint64_t seed,
                                               const std::function<bool(const Topology&)>& serves);

}  // namespace xccl
