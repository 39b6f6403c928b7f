// alltoall(v) on hosts of equal size, planned in microseconds: parts balanced over rails, or, where that is
// faster, messages combined by host. Not exact.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine HierarchicalAlltoallEngine();

}  // namespace xccl
