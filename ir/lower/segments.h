// Pass "segments": how many passes a program makes, how many instances share them, and by which protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/lower/moves.h"
#include "ir/program.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "topologies/topology.h"

namespace xccl::lowering {

inline constexpr int32_t kMostBlocks = 512;  // of a rank, all instances, where no other limit is given

enum class Segments {
  kTimed,   // the cheapest choice that is within a fiftieth of the fastest, by simulation
  kMiddle,  // the middle of the choices, as far as it is allowed: for programs too large to be simulated
  kWhole,   // one pass of one instance
};

// Sets program.segment_bytes and program.instances for one size and model; with a machine model kTimed sets
// the protocol, too. Cheap means: the simple protocol, few instances, few passes. kTimed tries a fixed list
// of choices with SimulateProgram, as many as a fixed amount of work allows, and returns the time in ps of
// the one that it takes. There are at most 16 instances, as many as make `most_blocks` threadblocks on a
// rank, and as many as send 512 KiB each over an average connection. Deterministic. Errors, except for
// kWhole: kInvalidInput where one instance is too many threadblocks.
StatusOr<std::optional<int64_t>> SetSegments(Segments segments, const Collective& collective,
                                             const Topology& topology, const std::vector<Move>& moves,
                                             const SimulateOptions& options, int32_t most_blocks,
                                             Program& program);

}  // namespace xccl::lowering
