// Packs trees for all roots at the best total rate, then cuts each tree's data into waves: small chunks that
// are sent one after another. Ranks of one orbit have translates of the same trees. Input: a request that the
// engine "forest" serves. Output: the fastest of the schedules that were simulated. docs/engines/forest.md.
#pragma once

#include <cstdint>
#include <limits>

#include "base/status.h"
#include "ir/bounds/bound.h"
#include "synth/common/step_limit.h"
#include "synth/common/synthesizer.h"

namespace xccl::forest {

// The most transfers that all candidates of a kind have together, if the request sets no limit of work.
inline constexpr int64_t kPackingWork = 1'500'000;

// Plans the request. `bound` is the request's bound. Schedules of more steps than `budget` allows are left
// out. Packings that cannot take less time than `beat_ps` are left out as well. Errors: kLimit if the linear
// program has too many rows, the work or the steps run out, the solver fails, or no packing can beat
// `beat_ps`.
StatusOr<Synthesis> PackAndCut(const SynthesisRequest& request, const Bound& bound, StepBudget& budget,
                               double beat_ps = std::numeric_limits<double>::infinity());

}  // namespace xccl::forest
