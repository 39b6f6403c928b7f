// The engine `mended`, for a machine that lacks links or hosts of a regular machine, or has slow links. It
// repairs a plan that another engine makes for the whole machine.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

// Returns the engine. The default engine of `table` plans for the whole machine.
Engine MendedEngine(EngineTable table);

}  // namespace xccl
