// The portfolio: tries engines in the order of their estimates and keeps the plan that simulates fastest.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine AutoEngine();

}  // namespace xccl
