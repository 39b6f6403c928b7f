// The engine "auto", also called the portfolio. It asks the other engines of the table for the time and the
// work of their plans, and makes the most promising plans within a budget of work. It simulates these plans
// and keeps the fastest. See docs/engines/auto.md.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine AutoEngine(EngineTable table);

}  // namespace xccl
