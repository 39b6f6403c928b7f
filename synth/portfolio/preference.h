// Chooses the plan to keep among several plans of one request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/analysis/schedule_stats.h"
#include "synth/common/synthesizer.h"

namespace xccl {

struct PlanCosts {
  double time_ps = 0;
  LinkUse link_use = {};
  int32_t steps = 0;
};

// Requires: made.simulation.
PlanCosts CostsOf(const Synthesis& made, const SynthesisRequest& request);

// Returns the index of the plan to keep.
// 1. Only plans as fast as the fastest are left. If the fastest plan has short messages, plans up to
//    2 % slower are left as well.
// 2. These plans are dropped if they send more than 1.1 times their fewest bytes between hosts.
// 3. The plan with the fewest messages wins; then the fewest steps, then the least time decide.
// Requires: not empty.
size_t Preferred(std::span<const PlanCosts> plans);

}  // namespace xccl
