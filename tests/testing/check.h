// Checks that every engine's answer must pass.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "synth/common/synthesizer.h"

namespace xccl::testing {

// True if XCCL_LONG=1 asks for the whole of each suite and not only its default part.
bool LongRun();

struct Answer {
  int64_t time_ps = 0;
  bool exact = false;
};

// Runs one engine and reports a test failure if its answer is wrong. The answer must verify, be normalized,
// keep the request's collective and lower to programs that compute it; neither schedule nor program may be
// faster than the lower bound. Absent if the engine does not serve the request or stopped at a limit.
std::optional<Answer> CheckEngine(const Engine& engine, const SynthesisRequest& request);

// Runs all engines. At least one must serve the request, and no answer may be faster than an exact one.
void CheckAllEngines(const SynthesisRequest& request);

}  // namespace xccl::testing
