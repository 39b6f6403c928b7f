// The engine "bfb": breadth-first broadcast (Zhao et al., NSDI 2025). Every chunk moves along shortest paths.
// In step t a rank receives the chunks that start t hops away, loading the links into the rank as evenly as
// possible. Plans that are not split into waves have as many steps as the machine's diameter. On tori,
// hypercubes and full meshes plans also use the full bandwidth.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine BfbEngine();

}  // namespace xccl
