// Which of several plans that take about as long is to be kept.
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
// Does a message of the plan cost more, on average, than its bytes on the slowest link that the plan uses?
bool HasShortMessages(const PlanCosts& plan);

// Requires: made.simulation.
PlanCosts CostsOf(const Synthesis& made, const SynthesisRequest& request);

// The index of the plan to keep. Where the fastest plan's messages are shorter than is useful, any plan that
// is about as fast may take its place: one that sends little between hosts; among several the one with the
// fewest messages, then the fewest steps, then the least time. Where messages are longer, only a plan as fast
// may. Requires: not empty.
size_t Preferred(std::span<const PlanCosts> plans);

}  // namespace xccl
