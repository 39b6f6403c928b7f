// What every engine's answer must stand up to, whoever made it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "synth/common/synthesizer.h"

namespace xccl::testing {

// The whole of a suite is run, not only its default part: XCCL_LONG=1.
bool LongRun();

struct Answer {
  int64_t time_ps = 0;
  bool exact = false;
};

// Asks one engine and reports a test failure for an answer that is wrong: it must verify, be normalized, keep
// the request's collective, take no less time than the lower bound, and claim exactness only at or above no
// other. Absent: the engine does not serve the request, or stopped at a limit.
std::optional<Answer> CheckEngine(const Synthesizer& engine, const SynthesisRequest& request);

// Asks all engines. At least one must serve the request, and no answer may be faster than an exact one.
void CheckAllEngines(const SynthesisRequest& request);

}  // namespace xccl::testing
