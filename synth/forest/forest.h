// The engine "forest". It splits every root's data over broadcast trees that together load all links as
// evenly as possible. The best rate of such trees is that of the worst cut (Edmonds, 1973). For reductions,
// trees are packed on the reversed topology and run backwards. docs/engines/forest.md.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine ForestEngine();

}  // namespace xccl
