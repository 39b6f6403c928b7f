// Pass "segments": chooses how many passes a program makes, how many instances share the passes, and the
// protocol, all by simulation.
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
  kTimed,   // the faster of kWhole and kMiddle's choice, by simulation; it may also be 8 passes of 1 instance
  kMiddle,  // the first that fits: 8 passes that 4 instances share, 4 passes that 2 share, or kWhole
  kWhole,   // one pass of one instance
};

// The most threadblocks of a rank.
struct BlockLimits {
  int32_t one = 0;  // in a program of one instance
  int32_t all = 0;  // in all instances together, if a program has several
};

// Returns the instructions of all ranks, in one instance.
int64_t NumInstructions(const Program& program);

// Sets program.segment_bytes and program.instances for one size and model. With a machine model, kTimed sets
// the protocol, too; it tries LL128 only if all connections are links between GPUs.
//
// kTimed simulates kWhole and kMiddle's choice with each protocol. It passes over choices whose simulation is
// too much work. If `like` is given, its passes, instances and protocol are tried in place of kMiddle's
// choice and of the protocols. kTimed returns the time in ps of what it chose; kMiddle and kWhole return
// nothing. Without a machine model messages have no price. Each of several instances then sends
// kLeastSentBytes (segments.cc) or more over an average connection. Deterministic unless the deadline passes.
// Errors: kInvalidInput if one instance has too many threadblocks; kLimit if the deadline passes before
// anything was simulated.
StatusOr<std::optional<int64_t>> SetSegments(Segments segments, const Collective& collective,
                                             const Topology& topology, const std::vector<Move>& moves,
                                             const SimulateOptions& options, const BlockLimits& blocks,
                                             const Program* like, Program& program);

// Starts from the choice of SetSegments, which takes `time_ps`. Adds passes and instances, up to
// kMostInstances (segments.cc), while each addition makes the program faster (ir/tolerance.h). With a machine
// model, unless `briefly`, does so for each other protocol, too, from one pass of one instance. The
// simulations together do at most a fixed amount of work, a quarter of it if `briefly`. A deadline that
// passes ends them. Returns the time of the program in ps.
StatusOr<int64_t> MoreSegments(const Collective& collective, const Topology& topology,
                               const std::vector<Move>& moves, const SimulateOptions& options,
                               const BlockLimits& blocks, int64_t time_ps, bool briefly, Program& program);

// Takes away instances, then passes, while the program's time is within the tolerance of the best time that
// was tried. A deadline that passes ends the trials. Returns the time of the program in ps.
StatusOr<int64_t> FewerSegments(const Collective& collective, const Topology& topology,
                                const std::vector<Move>& moves, const SimulateOptions& options,
                                const BlockLimits& blocks, int64_t time_ps, Program& program);

}  // namespace xccl::lowering
