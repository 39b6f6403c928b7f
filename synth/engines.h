// The table of all engines. `auto`, `smt`, `compare`, `--help`, the list in the docs and the tests read the
// table.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// Returns all engines in a fixed order, the default engine last.
std::span<const Engine> AllEngines();
// Returns the engine called `name`. Error: kUsage with "did you mean".
StatusOr<const Engine*> FindEngine(std::string_view name);
// Returns the engine that makes plans if the user names no engine.
const Engine& DefaultEngine();
// Returns the engine that improves a given plan.
const Engine& ImprovingEngine();

}  // namespace xccl
