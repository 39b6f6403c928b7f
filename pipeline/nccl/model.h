// Computes NCCL's own estimate of a collective's time, by the tables and formulas of NCCL 2.30
// (graph/tuning.cc). NCCL chooses an algorithm and a protocol by these estimates; its real times differ.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/collective.h"
#include "pipeline/nccl/graphs.h"
#include "runtime/nccl/tuner/abi.h"

namespace xccl::nccl {

// NCCL's estimate for a call with one algorithm and protocol.
struct Estimate {
  nccl_tuner::Algorithm algorithm = nccl_tuner::Algorithm::kRing;
  nccl_tuner::Protocol protocol = nccl_tuner::Protocol::kSimple;
  int32_t channels = 0;
  double us = 0;
};

// Returns the collective as NCCL's tuner names it; nullopt if NCCL does not model its time.
std::optional<nccl_tuner::Collective> CollectiveOf(CollectiveKind kind);

// Returns an estimate for each algorithm and protocol that NCCL runs by default, in order of algorithm and
// protocol, except CollNet and NVLS trees. `bytes`: the size as nccl-tests counts it. Requires >= 2 ranks.
std::vector<Estimate> Estimates(const Graphs& graphs, nccl_tuner::Collective collective, int64_t bytes);
// Returns NCCL's choice: the fastest estimate, and the first of several equal estimates.
Estimate Choice(const Graphs& graphs, nccl_tuner::Collective collective, int64_t bytes);

}  // namespace xccl::nccl
