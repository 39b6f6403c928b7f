// Plans alltoall(v) on hosts of equal size, without a search. The plan balances parts over rails, or combines
// messages by host if that is faster. Not exact.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine HierarchicalAlltoallEngine();

}  // namespace xccl
