// Packs trees for all roots at the best total rate, then cuts each tree's data into waves: pieces that are
// sent one after another. Ranks that symmetry makes alike share trees. In: a request that the engine "forest"
// serves. Out: the fastest schedule that was simulated. docs/engines/forest.md.
#pragma once

#include <limits>

#include "base/status.h"
#include "ir/bounds/bound.h"
#include "synth/common/step_limit.h"
#include "synth/common/synthesizer.h"

namespace xccl::forest {

// `bound`: the request's. Steps go by `budget`. What cannot take less than `beat_ps` is
// left out. Errors: kLimit: rows, work, steps, the solver, or nothing beats `beat_ps`.
StatusOr<Synthesis> PackAndCut(const SynthesisRequest& request, const Bound& bound, StepBudget& budget,
                               double beat_ps = std::numeric_limits<double>::infinity());

}  // namespace xccl::forest
