// `multicast`: what NVSwitch's multimem instructions do (NVLS).
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine MulticastEngine();

}  // namespace xccl
