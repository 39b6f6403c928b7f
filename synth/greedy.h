// Synthesis by matching links and chunks along time: greedy_flood.h where all ranks spread everything they
// get.
#pragma once

#include <memory>

#include "synth/synthesizer.h"

namespace xccl {

std::unique_ptr<Synthesizer> MakeGreedy();

}  // namespace xccl
