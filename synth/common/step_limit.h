// `--steps N`: what an engine says when its schedule takes more.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// For engines that have one schedule for a request. Errors: kLimit "ring: takes 3 steps; expected at most 2;
// hint: --steps=3".
Status CheckSteps(std::string_view engine, const SynthesisRequest& request, int32_t steps);

// The number of steps that a search's candidates may take, and the fewest steps of those refused.
class StepBudget {
 public:
  StepBudget(std::string_view engine, const SynthesisRequest& request)
      : engine_(engine), request_(&request) {}
  int32_t Most() const;  // without a limit the largest number
  // Are so many steps within the limit? Remembers numbers that are not.
  bool Allows(int32_t steps);
  bool HasRefused() const { return fewest_.has_value(); }
  // kLimit, whose needed() is the fewest steps that were refused. Requires: HasRefused().
  Status Refusal() const;

 private:
  std::string_view engine_;
  const SynthesisRequest* request_;
  std::optional<int32_t> fewest_;
};

// Explains `refusal`, by which an engine refused plans for their steps. kInfeasible where a rank is more transfers
// away from what it needs than steps are allowed, so that no engine has a plan; else `refusal`, or, where the
// engine asked other engines, kLimit. The hint names refusal.needed(), with which the engine has a plan. Requires:
// refusal.needed(). Cost: linear in ranks × links.
Status RefusalForSteps(const Engine& engine, const SynthesisRequest& request, Status refusal);

}  // namespace xccl
