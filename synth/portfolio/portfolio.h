// Tries all engines of the table on one request.
#pragma once

#include <span>

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// The preferred one (preference.h) of the plans that simulate about as fast as the fastest, with the others
// that are kept; its note names the runner-up. An engine that makes a wrong plan loses its turn, which
// the result's `faults` say. Errors: the last engine's, where none has a plan; kBug where all that had one
// had a wrong one.
StatusOr<Synthesis> TryEngines(const SynthesisRequest& request, std::span<const Engine> engines);

}  // namespace xccl
