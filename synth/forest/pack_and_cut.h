// Trees of all roots at the best rate, with symmetry where ranks are alike, cut into waves. In: a request
// that forest serves; out: the fastest of the schedules that were simulated. docs/engines/forest.md.
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
