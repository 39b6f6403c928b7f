// The engine `rail-trees`: broadcasts and reductions on clusters, pipelined over hosts and over all their
// NICs.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine RailTreesEngine();

}  // namespace xccl
