// Plans for a machine that lacks links or hosts of a regular one: the plan of the whole machine, repaired.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

// Returns the engine. The default engine of `table` plans for the whole machine.
Engine MendedEngine(EngineTable table);

}  // namespace xccl
