// Breadth-first broadcast (Zhao et al., NSDI 2025): every chunk moves along shortest paths, all that starts
// at one distance in one step, shared out so that no link of a receiver carries more than it must. As few
// steps as the machine's diameter; on tori, hypercubes, full meshes and the like at full bandwidth as well.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine BfbEngine();

}  // namespace xccl
