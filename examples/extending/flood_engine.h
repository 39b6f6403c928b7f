// An engine in forty lines: `flood` sends a chunk from every rank that has it to all neighbours, step by
// step. docs/extending.md shows where such a file goes and which row makes it known.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

// The row of the table in synth/engines.cc.
Engine FloodEngine();

}  // namespace xccl
