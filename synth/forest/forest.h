// Trees at the best rate: every root's data is split over broadcast trees that together load all links as
// evenly as possible. The rate is then that of the worst cut (Edmonds, 1973). Reductions use the same trees
// on the reversed topology, run backwards. docs/engines/forest.md.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine ForestEngine();

}  // namespace xccl
