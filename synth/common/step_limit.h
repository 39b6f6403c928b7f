// The limit --steps N: engines check schedules against it, and explain refusals.
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

// The number of steps that a search's candidates may take, and the fewest steps of the refused candidates.
class StepBudget {
 public:
  StepBudget(std::string_view engine, const SynthesisRequest& request)
      : engine_(engine), request_(&request) {}
  int32_t Most() const;  // the largest int32_t without a limit
  // Are so many steps within the limit? Remembers the fewest steps that are not.
  bool Allows(int32_t steps);
  bool HasRefused() const { return fewest_.has_value(); }
  // A kLimit status, whose needed() is the fewest refused steps. Requires: HasRefused().
  Status Refusal() const;

 private:
  std::string_view engine_;
  const SynthesisRequest* request_;
  std::optional<int32_t> fewest_;
};

// Explains `refusal`, an engine's refusal of plans with too many steps. Returns kInfeasible if some rank is
// more transfers from its data than steps are allowed, so that no engine has a plan; else `refusal`, or, if
// the engine asks other engines, kLimit. The hint names refusal.needed(). Requires: refusal.needed(). Cost:
// linear in ranks × links.
Status RefusalForSteps(const Engine& engine, const SynthesisRequest& request, Status refusal);

}  // namespace xccl
