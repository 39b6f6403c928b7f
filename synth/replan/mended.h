// Plans for a machine that lacks links or hosts of a regular one: the plan of the whole machine, repaired.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

// Returns the engine. The plan of the whole machine is the fastest of the engines in `table`.
Engine MendedEngine(EngineTable table);

}  // namespace xccl
