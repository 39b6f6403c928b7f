// The last pass: how many passes a program makes, and how many instances share them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/lowering/moves.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl::lowering {

// Sets program.segment_bytes and program.instances for one size. Tries a fixed list of choices with
// SimulateProgram and takes the cheapest (instances, then passes) within a fiftieth of the fastest; returns
// its time in ps. Absent: the program is too large to be simulated, and gets the middle of the list. At most
// 16 instances, as many as make 512 threadblocks on a rank, and as many as send 512 KiB each over an average
// connection. Deterministic.
StatusOr<std::optional<int64_t>> ChooseSegments(const Collective& collective, const Topology& topology,
                                                const std::vector<Move>& moves, int64_t size_bytes,
                                                Program& program);

}  // namespace xccl::lowering
