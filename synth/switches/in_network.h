// `in-network`: aggregation trees over switches (SHARP).
#pragma once

#include <memory>

#include "synth/synthesizer.h"

namespace xccl {

std::unique_ptr<Synthesizer> MakeInNetwork();

}  // namespace xccl
