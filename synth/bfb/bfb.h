// The engine "bfb": breadth-first broadcast (Zhao et al., NSDI 2025). Every chunk moves along shortest paths.
// Without waves, a rank receives in step t the chunks that start t hops away, and loads its links as evenly
// as possible. Copies then take as many steps as the longest of these paths has hops, and so do sums. On
// tori, hypercubes and full meshes plans also use the full bandwidth.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine BfbEngine();

}  // namespace xccl
