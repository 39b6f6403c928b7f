// `--steps N`: what an engine says when its schedule takes more.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "synth/synthesizer.h"

namespace xccl {

// For engines that have one schedule for a request. Errors: kInvalidInput "ring: takes 3 steps; expected at
// most 2; hint: --steps=3".
Status CheckSteps(std::string_view engine, const SynthesisRequest& request, int32_t steps);

// For engines that search: kLimit, with the fewest steps that were seen. Requires: a limit is given.
Status StepsUsed(std::string_view engine, const SynthesisRequest& request, int32_t fewest);
// The same where `steps` is beyond the limit, if there is one.
Status CheckStepsUsed(std::string_view engine, const SynthesisRequest& request, int32_t steps);

}  // namespace xccl
