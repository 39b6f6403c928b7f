// Trees of all roots at the best rate, packed by linear programs, with symmetry where ranks are alike, and
// cut into waves. In: a request that forest serves; out: the fastest of the schedules that were simulated.
// docs/synthesis.md, forest.
#pragma once

#include <cstdint>
#include <limits>

#include "base/status.h"
#include "synth/common/step_limit.h"
#include "synth/common/synthesizer.h"

namespace xccl::forest {

inline constexpr int64_t kMostRows = 800;           // of the linear program: links and roots
inline constexpr int64_t kMostTransfers = 1 << 22;  // of a plan cut into waves, expanded: it is to be lowered

// Steps go by `budget`. What cannot take less than `beat_ps` is left out.
// Errors: kLimit: rows, work, steps, the solver, or nothing beats `beat_ps`.
StatusOr<Synthesis> PackAndCut(const SynthesisRequest& request, StepBudget& budget,
                               double beat_ps = std::numeric_limits<double>::infinity());

}  // namespace xccl::forest
