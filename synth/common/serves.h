// Checks that engines share: of requests before a plan is made, and of plans by their simulation.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "ir/collective.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// Checks that the topology has every member. Errors: kInvalidInput with a member that it lacks.
Status CheckMembers(std::string_view engine, const SynthesisRequest& request);
// Checks that an engine which serves the kinds `served` serves the request: its kind, its members and its
// number of chunks. Errors: kInvalidInput.
Status ServesKind(std::string_view engine, std::span<const CollectiveKind> served,
                  const SynthesisRequest& request);
// Checks that the plan's simulation, if any, found the plan sound. Errors: kBug with the engine and the
// fault.
Status CheckSound(std::string_view engine, const Synthesis& made);

}  // namespace xccl
