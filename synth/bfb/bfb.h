// Breadth-first broadcast (Zhao et al., NSDI 2025): every chunk moves along shortest paths. A rank receives
// in step t the chunks that start t hops away, shared out so that no link into the rank carries more than it
// must. Plans have as many steps as the machine's diameter; on tori, hypercubes and full meshes they also use
// the full bandwidth.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine BfbEngine();

}  // namespace xccl
