// `multicast`: what NVSwitch's multimem instructions do (NVLS).
#pragma once

#include <memory>

#include "synth/common/synthesizer.h"

namespace xccl {

std::unique_ptr<Synthesizer> MakeMulticast();

}  // namespace xccl
