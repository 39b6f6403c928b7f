// Joins what is cut off, then moves edges off the busiest links: one edge at a time, each over the path that
// a search from the rank whose edge it is finds.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/simulate/simulation_model.h"
#include "ir/sizes.h"
#include "ir/time_model.h"
#include "synth/replan/trees.h"
#include "topologies/topology.h"

namespace xccl::replan {

struct RepairResult {
  int64_t edges = 0;   // of all trees, at the end
  int64_t kept = 0;    // those of the plan
  int64_t joined = 0;  // edges that were cut off
  int64_t moved = 0;   // edges moved to balance; 0 where that would not have helped, and nothing was moved
};

// Balancing leaves the busiest link less busy, or changes nothing. Errors: kInvalidInput where a rank cannot
// be reached any more. Cost: a search a joined edge, ending at the nearest rank that will do, and `work`: the
// links looked at while balancing, in all.
StatusOr<RepairResult> Repair(const Topology& topology, const Collective& collective,
                              const CollectiveSizes& sizes, TimeModel model, int64_t work, Trees& trees);

}  // namespace xccl::replan
