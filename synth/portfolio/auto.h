// The portfolio: tries engines in the order of their estimates and keeps the plan that simulates fastest.
#pragma once

#include <memory>

#include "synth/common/synthesizer.h"

namespace xccl {

std::unique_ptr<Synthesizer> MakeAuto();

}  // namespace xccl
