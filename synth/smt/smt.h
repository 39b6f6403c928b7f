// The smt engine: searches k-synchronous schedules with the solver Z3, after SCCL (Cai et al., 2021). A
// schedule has S steps, R rounds in all, and C chunks per part. In a step of r rounds a link carries at most
// r × its bandwidth ÷ (greatest common divisor of all bandwidths) chunks. Serves small machines; see
// docs/engines/smt.md.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

// Returns the engine. Plans of witness engines in `table` may answer questions before the solver.
Engine SmtEngine(EngineTable table);

}  // namespace xccl
