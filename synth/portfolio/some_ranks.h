// A collective of some ranks of a machine: the others may relay.
#pragma once

#include <functional>

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl {

using MakePlan = std::function<StatusOr<Synthesis>(const SynthesisRequest&)>;

// `make`'s plan as if there were no other ranks; with the others as relays, too, where they can carry
// anything and more than a percent is to be gained. The faster one. Requires: some rank takes no part.
StatusOr<Synthesis> PlanSomeRanks(const SynthesisRequest& request, const MakePlan& make);

}  // namespace xccl
