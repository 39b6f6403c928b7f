// The portfolio asks the other rows of the table what their plans would cost and makes those that promise
// most within a budget of work. It simulates them and keeps the fastest. docs/engines/auto.md.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine AutoEngine(EngineTable table);

}  // namespace xccl
