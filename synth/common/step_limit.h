// The limit of steps (--steps N): checks schedules against the limit and explains refusals.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// Checks the steps of an engine that has only one schedule for a request. Errors: kLimit "ring: takes 3
// steps; expected at most 2; hint: --steps=3".
Status CheckSteps(std::string_view engine, const SynthesisRequest& request, int32_t steps);

// Checks the candidates of a search against the limit, and remembers the fewest steps of the refused
// candidates.
class StepBudget {
 public:
  StepBudget(std::string_view engine, const SynthesisRequest& request)
      : engine_(engine), request_(&request) {}
  int32_t Most() const;  // the limit; the largest int32_t if there is no limit
  // Returns whether a candidate with `steps` steps is within the limit. If not, remembers `steps` if it is
  // the fewest so far.
  bool Allows(int32_t steps);
  bool HasRefused() const { return fewest_.has_value(); }
  // Returns a kLimit status whose needed() is the fewest refused steps. Requires: HasRefused().
  Status Refusal() const;

 private:
  std::string_view engine_;
  const SynthesisRequest* request_;
  std::optional<int32_t> fewest_;
};

// Explains an engine's refusal of plans with too many steps. If some rank is more transfers from its data
// than the allowed steps, no engine has a plan, and the result is kInfeasible. Otherwise the result is
// `refusal`, or a new kLimit if the engine asks other engines. A new status hints at refusal.needed() steps.
// Requires that refusal.needed() and limits.steps are set. Cost: linear in ranks × links.
Status RefusalForSteps(const Engine& engine, const SynthesisRequest& request, Status refusal);

}  // namespace xccl
