// Plans the collectives of a training step. Each line is one collective of one kind of group; all groups of a
// line are planned together. Also writes a plan book for the communicators of the groups.
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
  int64_t count = 1;  // how often the collective runs in one training step
  GroupsResult groups;
  std::string file;     // the plan's file in the book; empty: no plan in the book
  bool listed = false;  // the book's index lists the file
  int64_t step_ps() const { return groups.result.simulation.time_ps * count; }
};

struct TrainingPlan {
  std::string topology;
  TrainingJob job;
  Layout layout;
  std::vector<PlannedLine> lines;
};

// Plans each line. If `book` is not empty, also writes a plan book to this directory, which is created if
// missing. For the book, the first group of each line is planned alone, on the submachine of its members, and
// lowered. A group that needs relays gets no plan in the book. If several lines have the same collective,
// number of ranks and size, the index lists only the first.
StatusOr<TrainingPlan> PlanTraining(const Topology& topology, const TrainingJob& job,
                                    const PlanOptions& options, const std::string& book);

}  // namespace xccl
