// Local search on a flood, or on another engine's schedule of copies. It changes the link that brings a chunk
// to a rank, and the order in which links carry chunks.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/schedule.h"
#include "synth/common/problem.h"

namespace xccl::greedy {

struct ImproveOptions {
  uint64_t seed = 0;
  int64_t goal_ps = 0;  // a bound on the time, at which the search ends
  int64_t work = 0;     // transfers timed in all changes together
};

// Returns the schedule improved and normalized, no slower by the search's own clock. Absent if a path has
// several links, if a rank is sent a chunk twice or one that it holds, and without transfers or work.
// Requires: a plain schedule that solves the problem, in an order in which chunks arrive before they are
// passed on. Cost: linear in options.work.
std::optional<Schedule> ImproveSchedule(const CopyProblem& problem, const Schedule& copies,
                                        const ImproveOptions& options);

}  // namespace xccl::greedy
