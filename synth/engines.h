// All engines.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// All engines in a fixed order, `auto` last.
std::span<const std::unique_ptr<Synthesizer>> AllSynthesizers();
// Those whose plans serve smt as witnesses.
std::span<const Synthesizer* const> WitnessEngines();
// Error: kUsage with "did you mean".
StatusOr<const Synthesizer*> FindSynthesizer(std::string_view name);

}  // namespace xccl
