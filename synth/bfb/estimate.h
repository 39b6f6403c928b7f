// What a schedule will take, near enough to choose between two of the same kind: no events, only loads.
#pragma once

#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

// blocking: the slowest way of each step, every link on it as full as it is in that step, added up.
// pipelined: the longest latency of each step, added up, and the fullest link of all. `symmetry` is the group
// of a compressed schedule, else absent. Requires: a normalized schedule. Linear in transfers × links of a
// path.
double EstimateSchedulePs(const Schedule& schedule, const Collective& cut, const Topology& topology,
                          const SymmetryGroup* symmetry, int64_t size_bytes, TimeModel model);

}  // namespace xccl
