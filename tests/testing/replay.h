// A slow, obvious second opinion on schedules, for tests only: sets of ranks, one transfer at a time.
// Answers only yes or no.
#pragma once

#include "ir/collective.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl::testing {

// True if the schedule does what the collective says. Requires: columns of equal length, ids in range, no
// symmetry.
bool Replay(const Schedule& schedule, const Collective& collective, const Topology& topology);

}  // namespace xccl::testing
