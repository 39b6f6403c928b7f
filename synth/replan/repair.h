// Repairs trees on a changed machine. Repair first gives every rank that lost its edge a new way to the root.
// It then moves edges off busy links, one edge at a time, each to a path that a search finds.
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
  int64_t edges = 0;   // edges of all trees after the repair
  int64_t kept = 0;    // edges that are the same as in the plan
  int64_t joined = 0;  // cut-off ranks for which a new way was searched and found
  int64_t moved = 0;   // edges moved off busy links; 0 if balancing would not have helped
};

// Repairs `trees` in place. Balancing leaves the busiest link less busy, or changes nothing. Balancing starts
// no search once it has looked at `work` links. Errors: kInvalidInput if a rank cannot be reached any more.
// Cost: `work`, and for each joined edge a search that ends at the nearest suitable rank.
StatusOr<RepairResult> Repair(const Topology& topology, const Collective& collective,
                              const CollectiveSizes& sizes, TimeModel model, int64_t work, Trees& trees);

}  // namespace xccl::replan
