// The time of a collective as NCCL estimates it to choose an algorithm and a protocol, by the tables and
// formulas of NCCL 2.30 (graph/tuning.cc). NCCL chooses by these estimates; its real times differ.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/collective.h"
#include "pipeline/nccl/graphs.h"
#include "runtime/nccl/tuner/abi.h"

namespace xccl::nccl {

// NCCL's time for a call by one algorithm and protocol.
struct Estimate {
  nccl_tuner::Algorithm algorithm = nccl_tuner::Algorithm::kRing;
  nccl_tuner::Protocol protocol = nccl_tuner::Protocol::kSimple;
  int32_t channels = 0;
  double us = 0;
};

// Broadcast, reduce, allgather, reduce_scatter and allreduce; NCCL models no other collective.
std::optional<nccl_tuner::Collective> CollectiveOf(CollectiveKind kind);

// Everything that NCCL can run, by default and without CollNet, in order of algorithm and protocol. `bytes`
// is nccl-tests' size. Requires: several ranks.
std::vector<Estimate> Estimates(const Graphs& graphs, nccl_tuner::Collective collective, int64_t bytes);
// NCCL's choice: the first of the fastest.
Estimate Choice(const Graphs& graphs, nccl_tuner::Collective collective, int64_t bytes);

}  // namespace xccl::nccl
