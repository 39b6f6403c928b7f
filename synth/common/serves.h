// The common test of whether an engine serves a request.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "ir/collective.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// Errors: kInvalidInput naming a member that the topology does not have.
Status CheckMembers(std::string_view engine, const SynthesisRequest& request);
// Does an engine that serves these kinds serve the request's, with its members and limits? Errors:
// kInvalidInput.
Status ServesKind(std::string_view engine, std::span<const CollectiveKind> served,
                  const SynthesisRequest& request);
// Did its simulation find the plan sound, where it was simulated? Errors: kBug with the engine and the fault.
Status CheckSound(std::string_view engine, const Synthesis& made);

}  // namespace xccl
