// The engine `levels`: rounds of sends over the levels of a symmetric machine (levels_engine.cc).
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine LevelsEngine();

}  // namespace xccl
