// The greedy engine: makes schedules for every collective on every topology. If most ranks keep what they
// receive, it gives rare chunks to idle links (flood.h). It also gives chunks paths that share the load
// (trees.h) and orders the transfers on each link (list.h). A sum is a copy on the reversed topology, played
// backwards. Plans are not proved to be the best. See docs/engines/greedy.md.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine GreedyEngine();

}  // namespace xccl
