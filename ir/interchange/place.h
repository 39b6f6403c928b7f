// A foreign plan on a machine: the plan that all commands take.
#pragma once

#include <string>

#include "base/status.h"
#include "ir/interchange/foreign.h"
#include "ir/plan.h"
#include "topologies/topology.h"

namespace xccl {

// Chooses paths (place_paths.h), finds the schedule (schedule_of.h), and proves the whole. Errors:
// kInvalidInput for a machine that the plan does not fit, and for programs that no schedule says; kBug where
// the proof fails. Requires: no groups of switches.
StatusOr<Plan> PlaceOnMachine(const Imported& imported, const Topology& topology);

}  // namespace xccl
