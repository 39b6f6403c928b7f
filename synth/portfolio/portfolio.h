// Searches for the best plan among the engines of the table.
#pragma once

#include <span>

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// Tries all engines on one request, except engines that search long or ask others. Returns the preferred plan
// (preference.h) of those that are kept. `others` has the other kept plans, `note` says why the plan was
// preferred, and `faults` lists wrong plans. A wrong plan drops the turns of its engine. If even the first
// plan is beyond the limits, it is returned without a simulation. Errors: those of BoundOf. If there is no
// plan: kBug if one was wrong, else the refusal of a turn beyond the limits, else the last refusal.
StatusOr<Synthesis> TryEngines(const SynthesisRequest& request, std::span<const Engine> engines);

}  // namespace xccl
