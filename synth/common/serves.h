// The checks that engines share: of a request before its plan is made, and of a plan after its simulation.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "ir/collective.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// Checks that the topology has every member. Errors: kInvalidInput, with a member that it lacks.
Status CheckMembers(std::string_view engine, const SynthesisRequest& request);
// Checks the request's kind, members and number of chunks. `served` lists the kinds that the engine serves.
// Errors: kInvalidInput.
Status ServesKind(std::string_view engine, std::span<const CollectiveKind> served,
                  const SynthesisRequest& request);
// Checks that the plan's simulation, if any, found the plan sound. Errors: kBug with the engine and the
// fault.
Status CheckSound(std::string_view engine, const Synthesis& made);

}  // namespace xccl
