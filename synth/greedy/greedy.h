// The greedy engine: makes schedules on every topology for all collectives except some user-defined ones. If
// most ranks keep what they receive, it gives rare chunks to idle links (flood.h). It also gives chunks paths
// that share the load (trees.h) and orders the transfers on each link (list.h). A sum is a copy on the
// reversed topology, played backwards. A plan is proved to be the best only if it meets the bound. See
// docs/engines/greedy.md.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine GreedyEngine();

}  // namespace xccl
