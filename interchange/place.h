// A foreign plan on a machine: the plan that all commands take.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "interchange/common/foreign.h"
#include "ir/plan.h"
#include "topologies/topology.h"

namespace xccl {

// Takes the paths that the file says where they are this machine's, else chooses some (place_paths.h), finds
// the schedule (schedule_of.h), and proves the whole. Adds to `warnings`, where it is given, that the file's
// paths are not taken. Errors: kInvalidInput for a machine that the plan does not fit, and for programs that
// no schedule says; kBug where the proof fails.
StatusOr<Plan> PlaceOnMachine(const Imported& imported, const Topology& topology,
                              std::vector<std::string>* warnings = nullptr);

}  // namespace xccl
