// Plans the collectives of a training step. Each line is one collective of one kind of group; all groups of a
// line are planned together. Also writes a plan book for the communicators of the groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "pipeline/groups_together.h"
#include "pipeline/plan_result.h"
#include "pipeline/training_experts.h"
#include "synth/groups/training.h"
#include "topologies/topology.h"

namespace xccl {

struct PlannedLine {
  Parallelism parallelism = Parallelism::kDp;
  std::string what;
  int64_t count = 1;  // how often the collective runs in one training step
  // Exactly one of the two is set: `together` for a collective, `experts` for dispatch or combine.
  std::optional<GroupsResult> together;
  std::optional<PlannedExperts> experts;
  std::string file = {};  // the plan's file in the book; empty: no plan in the book
  bool listed = false;    // the book's index lists the file
  const std::vector<ProcessGroup>& groups() const { return experts ? experts->groups : together->groups; }
  int64_t time_ps() const { return experts ? experts->time_ps : together->result.simulation.time_ps; }
  int64_t bound_ps() const { return experts ? experts->bound_ps : together->result.bound.bound_ps; }
  double ratio() const { return experts ? RatioOf(time_ps(), bound_ps()) : together->result.ratio; }
  std::string collective() const;  // "allgather", "dispatch"
  int64_t step_ps() const { return time_ps() * count; }
};

struct TrainingPlan {
  std::string topology;
  TrainingJob job;
  Layout layout;
  std::vector<PlannedLine> lines;
};

// Plans each line. The line of experts becomes two lines, dispatch and combine, if its sizes fit an expert
// plan (FitsExpertPlan); otherwise it is planned as an alltoall. If `book` is not empty, also writes a plan
// book to this directory, which is created if missing. For the book, the first group of each collective's
// line is planned alone, on the submachine of its members, and lowered. A group that needs relays gets no
// plan in the book. If several lines have the same collective, number of ranks and size, the index lists only
// the first. The index lists no plans of experts. Errors: kUsage if a line takes over a day in one step;
// those of LayoutOf, of planning and of writing.
StatusOr<TrainingPlan> PlanTraining(const Topology& topology, const TrainingJob& job,
                                    const PlanOptions& options, const std::string& book);

}  // namespace xccl
