// The engine "auto", also called the portfolio. It asks the other engines of the table for the time and the
// work of their plans, except engines that search long. It makes and simulates the most promising plans
// within a budget of work, and returns the preferred one (preference.h). See docs/engines/auto.md.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine AutoEngine(EngineTable table);

}  // namespace xccl
