// The critical path of one run of a program's simulation, found from its log.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/analysis/program_index.h"
#include "ir/simulate/critical_path.h"
#include "ir/simulate/program_log.h"
#include "topologies/topology.h"

namespace xccl {

// Returns the pieces of the chain that ends with the last event, at `time_ps`; last piece first. Cost: linear
// in the chain. Errors: kBug if times in the log contradict each other.
StatusOr<std::vector<PathPiece>> ChainOf(const ProgramLog& log, const ProgramIndex& index,
                                         const Topology& topology, int64_t time_ps);

}  // namespace xccl
