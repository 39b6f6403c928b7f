// The table of all engines. `auto`, `smt`, `compare`, `sweep`, `--help` and the tests read the table. A test
// compares the list in the docs with it.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// Returns all engines in a fixed order, the default engine last.
std::span<const Engine> AllEngines();
// Returns the engine called `name`. Error: kUsage with the nearest name or, if none is near, with all names.
StatusOr<const Engine*> FindEngine(std::string_view name);
// Returns the engine that makes plans if the user names no engine.
const Engine& DefaultEngine();
// Returns the engine that improves a given plan.
const Engine& ImprovingEngine();

}  // namespace xccl
