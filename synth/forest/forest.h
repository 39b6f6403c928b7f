// Throughput-optimal trees: every root's data is split over broadcast trees that together load all links as
// evenly as possible, so that the rate is the worst cut's (Edmonds; with switches: Bang-Jensen, Frank,
// Jackson). Reductions are the same trees on the reversed topology, run backwards. docs/synthesis.md, forest.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine ForestEngine();

}  // namespace xccl
