// `in-network`: aggregation trees over switches (SHARP).
#pragma once

#include <memory>

#include "synth/common/synthesizer.h"

namespace xccl {

std::unique_ptr<Synthesizer> MakeInNetwork();

}  // namespace xccl
