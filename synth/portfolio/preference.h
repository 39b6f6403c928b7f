// Which of several plans that take about as long is to be kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/analysis/schedule_stats.h"
#include "synth/common/synthesizer.h"

namespace xccl {

inline constexpr double kAboutAsFast = 1.02;  // times the least time

struct PlanCosts {
  double time_ps = 0;
  LinkUse link_use = {};
  int32_t steps = 0;
};
// Requires: made.simulation.
PlanCosts CostsOf(const Synthesis& made, const SynthesisRequest& request);

// The index of the plan to keep. Where the messages of the fastest are tiny, that is among those that are
// about as fast one that sends little between hosts, and of these the one with the fewest messages, then the
// fewest steps, then the least time. Where they are short, others may lose half of what the fastest loses
// beside the bound (0: unknown). Where they are long, only a plan that is as fast can take its place.
// Requires: not empty.
size_t Preferred(std::span<const PlanCosts> plans, double bound_ps = 0);

}  // namespace xccl
