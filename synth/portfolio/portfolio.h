// Searches for the best plan among the engines of the table.
#pragma once

#include <span>

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// Tries all engines on one request. Returns the preferred plan (preference.h) of the plans that are about as
// fast as the fastest. `others` has the other plans that are kept, `note` says why the plan was kept, and
// `faults` lists wrong plans. An engine that makes a wrong plan gets no further turn. Errors: the last
// engine's refusal if no engine has a plan; kBug if every plan made was wrong.
StatusOr<Synthesis> TryEngines(const SynthesisRequest& request, std::span<const Engine> engines);

}  // namespace xccl
