// `--steps N`: an engine's error when its schedule takes more.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// For engines that have one schedule for a request. Errors: kInvalidInput "ring: takes 3 steps; expected at
// most 2; hint: --steps=3".
Status CheckSteps(std::string_view engine, const SynthesisRequest& request, int32_t steps);

// For engines that search: kLimit, with the fewest steps that were seen. Requires: a limit is given.
Status StepsUsed(std::string_view engine, const SynthesisRequest& request, int32_t fewest);

// The number of steps that a search's candidates may take, and the fewest steps of those refused.
class StepBudget {
 public:
  StepBudget(std::string_view engine, const SynthesisRequest& request)
      : engine_(engine), request_(&request) {}
  bool HasLimit() const { return request_->limits.steps.has_value(); }
  int32_t Most() const;  // without a limit the largest number
  // Are so many steps within the limit? Remembers numbers that are not.
  bool Allows(int32_t steps);
  bool HasRefused() const { return fewest_.has_value(); }
  // StepsUsed with the fewest. Requires: HasRefused().
  Status Refusal() const { return StepsUsed(engine_, *request_, *fewest_); }

 private:
  std::string_view engine_;
  const SynthesisRequest* request_;
  std::optional<int32_t> fewest_;
};

}  // namespace xccl
