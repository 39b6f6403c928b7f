// A collective of some ranks of a machine: the others may relay.
#pragma once

#include <functional>

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl {

using MakePlan = std::function<StatusOr<Synthesis>(const SynthesisRequest&)>;

// The plan that `make` gives as if there were no other ranks. Where another rank can relay and more than a
// percent is to be gained, `make` also plans with relays, and the faster plan is kept. Requires: some rank
// takes no part.
StatusOr<Synthesis> PlanSomeRanks(const SynthesisRequest& request, const MakePlan& make);

}  // namespace xccl
