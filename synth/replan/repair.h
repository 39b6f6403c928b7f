// Joins what is cut off, then moves edges off the busiest links: one edge at a time, each over the way that
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

struct RepairOptions {
  TimeModel model = TimeModel::kPipelined;
  int64_t work = 0;  // links looked at while balancing, in all; 0: nothing is moved that need not be
};

struct RepairResult {
  int64_t joined = 0;  // edges that were cut off
  int64_t moved = 0;   // edges moved to balance
  int64_t work = 0;
  int64_t busiest_before_ps = 0,
          busiest_ps = 0;  // time that the busiest link takes, before balancing and after
};

// The busiest link is never busier after balancing than before. Errors: kInvalidInput where a rank cannot be
// reached any more. Cost: a search a joined edge, ending at the nearest rank that will do, and `work`.
StatusOr<RepairResult> Repair(const Topology& topology, const Collective& collective,
                              const CollectiveSizes& sizes, const RepairOptions& options, Trees& trees);

}  // namespace xccl::replan
