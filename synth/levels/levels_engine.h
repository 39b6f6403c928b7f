// The engine levels: see the comment in levels_engine.cc.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine LevelsEngine();

}  // namespace xccl
