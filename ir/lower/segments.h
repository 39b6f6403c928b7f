// The last pass: how many passes a program makes, and how many instances share them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/lower/moves.h"
#include "ir/program.h"
#include "ir/simulate/simulate.h"
#include "topologies/topology.h"

namespace xccl::lowering {

inline constexpr int32_t kMostBlocks = 512;  // of a rank, all instances, where no other limit is given

// Sets program.segment_bytes and program.instances for one size and model, with a machine model the protocol,
// too. Tries a fixed list of choices with SimulateProgram, as many as a fixed amount of work allows, and
// takes the cheapest (simple, instances, then passes) within a fiftieth of the fastest; returns its time in
// ps. At most 16 instances, as many as make `most_blocks` threadblocks on a rank, and as many as send 512 KiB
// each over an average connection. Deterministic. Errors: kInvalidInput where one instance is too many
// threadblocks.
StatusOr<int64_t> ChooseSegments(const Collective& collective, const Topology& topology,
                                 const std::vector<Move>& moves, const SimulateOptions& options,
                                 int32_t most_blocks, Program& program);

// For a program that is too large to be simulated: the middle of that list, as far as it is allowed, and the
// simple protocol. Linear. Errors: likewise.
Status SetMiddleSegments(const Collective& collective, const std::vector<Move>& moves, int64_t size_bytes,
                         int32_t most_blocks, Program& program);

}  // namespace xccl::lowering
