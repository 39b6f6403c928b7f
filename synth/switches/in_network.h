// `in-network`: aggregation trees over switches (SHARP).
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine InNetworkEngine();

}  // namespace xccl
