#include "synth/common/step_limit.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace xccl {

Status CheckSteps(std::string_view engine, const SynthesisRequest& request, int32_t steps) {
  const std::optional<int32_t> most = request.limits.steps;
  if (!most || steps <= *most) return OkStatus();
  return LimitReached(
      fmt::format("{}: takes {} steps; expected at most {}; hint: --steps={}", engine, steps, *most, steps));
}

Status StepBudget::Refusal() const {
  return LimitReached(fmt::format(
      "{}: {} on {}: {} steps at least were used; at most {} are allowed; hint: --steps={}", engine_,
      request_->collective->name(), request_->topology->name(), *fewest_, Most(), *fewest_));
}

int32_t StepBudget::Most() const {
  return request_->limits.steps.value_or(std::numeric_limits<int32_t>::max());
}

bool StepBudget::Allows(int32_t steps) {
  if (steps <= Most()) return true;
  fewest_ = std::min(fewest_.value_or(steps), steps);
  return false;
}

}  // namespace xccl
