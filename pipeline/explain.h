// Why a plan takes as long as it does: what bounds it, its critical path, the next engine's plan, and what a
// few changes to the machine or to the plan would gain. Every gain is that of a plan that was simulated on
// the changed machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/simulate/critical_path.h"
#include "pipeline/plan_result.h"
#include "topologies/topology.h"

namespace xccl {

// The time that a change to the machine or to the plan would bring.
struct WhatIf {
  std::string change;      // "gpu-switch links twice as fast"
  int64_t time_ps = 0;     // the schedule's on the changed machine, or a new plan's
  int64_t bound_ps = 0;    // on the changed machine
  bool replanned = false;  // the time is that of a new plan
};

// The critical path of the program, or of the schedule where there is no program, and the changes that were
// tried.
struct Explanation {
  CriticalPath path;     // empty where it was not traced
  std::string untraced;  // why the path was not traced; empty: it was
  bool of_program = false;
  int64_t time_ps = 0;          // the program's or the schedule's, as the path
  std::vector<WhatIf> changes;  // the changes that were tried, the best first
  std::string stopped;          // why not all changes were tried; empty: all were
};

// Requires: a result of MakePlan with these arguments. A path that cannot be traced, and changes that there
// is no time for, are left out with the reason: the plan is worth as much without them. Cost: a trace, and
// two plans, of which auto makes as many attempts as for the first.
Explanation Explain(const PlanResult& result, const Collective& collective, const PlanOptions& options);

// Five lines, each a name and a text: "bound", "path", "next", "faster", "no gain".
struct NamedLine {
  std::string name, text;
};
std::vector<NamedLine> LinesOf(const Explanation& explanation, const PlanResult& result);

}  // namespace xccl
