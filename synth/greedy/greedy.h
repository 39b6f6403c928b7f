// Synthesis by matching links and chunks along time, for every collective on every topology. Where all ranks
// keep what they get, idle links are given rare chunks (flood.h); else chunks are given paths that
// share the load (trees.h) and links an order (list.h). Sums are the same, run backwards on the
// reversed topology. Not exact. docs/engines/greedy.md.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine GreedyEngine();

}  // namespace xccl
