// `multicast`: what NVSwitch's multimem instructions do (NVLS).
#pragma once

#include <memory>

#include "synth/synthesizer.h"

namespace xccl {

std::unique_ptr<Synthesizer> MakeMulticast();

}  // namespace xccl
