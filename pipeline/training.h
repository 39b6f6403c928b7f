// Plans the collectives of a training step: a line for each kind of group, all groups of a line at once, and
// a plan book for the communicators of the groups.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "pipeline/groups_together.h"
#include "pipeline/plan_result.h"
#include "synth/groups/training.h"
#include "topologies/topology.h"

namespace xccl {

struct PlannedLine {
  Parallelism parallelism = Parallelism::kDp;
  std::string what;
  int64_t count = 1;  // times per step
  GroupsResult groups;
  std::string file;     // in the book; empty: none
  bool listed = false;  // in its index
  int64_t step_ps() const { return groups.result.simulation.time_ps * count; }
};

struct TrainingPlan {
  std::string topology;
  TrainingJob job;
  Layout layout;
  std::vector<PlannedLine> lines;
};

// Plans each line. With a book (a directory, made if missing), the first group of each line is also planned
// as a communicator of its own, on the submachine of its members, lowered and written. Groups that need
// relays get no plan in the book. Where lines have the same collective, number of ranks and size, the index
// lists the first.
StatusOr<TrainingPlan> PlanTraining(const Topology& topology, const TrainingJob& job,
                                    const PlanOptions& options, const std::string& book);

}  // namespace xccl
