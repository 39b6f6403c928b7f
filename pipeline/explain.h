// Explains why a plan takes as long as it does: its bound, its critical path, the plan of the next engine,
// and the gain of a few changes to the machine or to the plan. Every gain comes from a simulation: of the
// same schedule on the changed machine, or of a new plan's schedule.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/simulate/critical_path.h"
#include "pipeline/plan_result.h"
#include "topologies/topology.h"

namespace xccl {

// A change to the machine or to the plan, and the simulated time of a schedule after the change.
struct WhatIf {
  std::string change;      // "gpu-switch links twice as fast"
  int64_t time_ps = 0;     // of the plan's schedule, or of a new plan's schedule
  int64_t bound_ps = 0;    // after the change; 0: not known
  bool replanned = false;  // the time is that of a new plan
};

// The critical path and the changes that were tried. The path is that of the program; if there is no program,
// or it cannot be traced, the path is that of the schedule.
struct Explanation {
  CriticalPath path;     // empty if it was not traced
  std::string untraced;  // why the path was not traced; empty: it was
  bool of_program = false;
  int64_t time_ps = 0;          // time of the program if of_program is set, otherwise of the schedule
  std::vector<WhatIf> changes;  // the changes that were tried, the fastest first
  std::string stopped;          // says that the deadline ended the trials; empty: it did not
};

// Explains a plan. Never fails: a path that cannot be traced and changes for which no time is left are left
// out, and a text gives the reason. A change for which no plan can be made is left out. Requires: a result of
// MakePlan with the same collective and options. Cost: up to two traces, a few simulations, and at most two
// new plans.
Explanation Explain(const PlanResult& result, const Collective& collective, const PlanOptions& options);

struct NamedLine {
  std::string name, text;
};
// Returns the explanation as five named lines: "bound", "path", "next", "faster", "no gain".
std::vector<NamedLine> LinesOf(const Explanation& explanation, const PlanResult& result);
// Returns the lines as a text for people, under the heading "why". Empty: no lines.
std::string ExplanationText(std::span<const NamedLine> why);

}  // namespace xccl
