// Which of several plans that take about as long is to be kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/schedule_stats.h"
#include "synth/common/synthesizer.h"

namespace xccl {

struct PlanCosts {
  double time_ps = 0;
  LinkUse link_use = {};
  int32_t steps = 0;
};
// Requires: made.simulation.
PlanCosts CostsOf(const Synthesis& made, const SynthesisRequest& request);

// Are the messages of the plan so short that they cost more than the time in the model says?
bool HasShortMessages(const PlanCosts& plan);

// The index of the plan to keep. Where the messages of the fastest are short, that is among those that take
// at most a fiftieth longer one that sends little between hosts, and of these the one with the fewest
// messages, then the fewest steps, then the least time. Where they are long, only a plan that is as fast can
// take its place. Requires: not empty.
size_t Preferred(std::span<const PlanCosts> plans);

}  // namespace xccl
