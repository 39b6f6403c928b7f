// The last pass: how many passes a program makes, and how many instances share them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/lowering/moves.h"
#include "ir/program.h"
#include "ir/simulate.h"
#include "topologies/topology.h"

namespace xccl::lowering {

// Sets program.segment_bytes and program.instances for one size and model. Tries a fixed list of choices with
// SimulateProgram, as many as a fixed amount of work allows, and takes the cheapest (instances, then passes)
// within a fiftieth of the fastest; returns its time in ps. At most 16 instances, as many as make 512
// threadblocks on a rank, and as many as send 512 KiB each over an average connection. Deterministic.
StatusOr<int64_t> ChooseSegments(const Collective& collective, const Topology& topology,
                                 const std::vector<Move>& moves, const SimulateOptions& options,
                                 Program& program);

// For a program that is too large to be simulated: the middle of that list, as far as it is allowed. Linear.
void SetMiddleSegments(const Collective& collective, const std::vector<Move>& moves, int64_t size_bytes,
                       Program& program);

}  // namespace xccl::lowering
