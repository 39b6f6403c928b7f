// The table of all engines: `auto`, smt's witnesses, `compare`, `--help`, the docs' list and the tests read
// it.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// All engines in a fixed order, the default one last.
std::span<const Engine> AllEngines();
// Error: kUsage with "did you mean".
StatusOr<const Engine*> FindEngine(std::string_view name);
// The row whose plans are made where no engine is named.
const Engine& DefaultEngine();
// The row that improves a plan.
const Engine& ImprovingEngine();

}  // namespace xccl
