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

enum class Segments {
  kTimed,   // one pass of one instance or the middle, by simulation
  kMiddle,  // four instances of two passes each, as far as that is allowed
  kWhole,   // one pass of one instance
};

// Threadblocks of a rank: of one instance, and of all where there are several.
struct BlockLimits {
  int32_t one = 0, all = 0;
};

// Of all ranks.
int64_t NumInstructions(const Program& program);

// Sets program.segment_bytes and program.instances for one size and model; with a machine model kTimed sets
// the protocol, too: LL128 only where all connections are GPUs' links. kTimed simulates each choice with each
// protocol, or what the program `like` took in place of the middle where one is given, and returns the time
// in ps of what it takes. The middle is left out where it is too much work. Without a machine model, which
// has a price for messages, an instance sends 512 KiB over an average connection at least. Deterministic.
// Errors, except for kWhole: kInvalidInput where one instance is too many threadblocks.
StatusOr<std::optional<int64_t>> SetSegments(Segments segments, const Collective& collective,
                                             const Topology& topology, const std::vector<Move>& moves,
                                             const SimulateOptions& options, const BlockLimits& blocks,
                                             const Program* like, Program& program);

// From what SetSegments has chosen, which takes `time_ps`: more passes and more instances, 16 at most, while
// each gains a fiftieth; with a machine model, unless `briefly`, so from one instance by each other protocol.
// Simulates as often as a fixed amount of work allows, a quarter of it `briefly`.
// Returns the program's time in ps.
StatusOr<int64_t> MoreSegments(const Collective& collective, const Topology& topology,
                               const std::vector<Move>& moves, const SimulateOptions& options,
                               const BlockLimits& blocks, int64_t time_ps, bool briefly, Program& program);

// Fewer instances, then fewer passes, while the loss beside the best of all that were tried is no more than a
// fiftieth. Returns the time.
StatusOr<int64_t> FewerSegments(const Collective& collective, const Topology& topology,
                                const std::vector<Move>& moves, const SimulateOptions& options,
                                const BlockLimits& blocks, int64_t time_ps, Program& program);

}  // namespace xccl::lowering
