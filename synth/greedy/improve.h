// Local search that shortens a flood or another engine's schedule of copies. It changes which link brings a
// chunk to a rank, and the order in which links carry chunks.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/schedule.h"
#include "synth/common/problem.h"

namespace xccl::greedy {

struct ImproveOptions {
  uint64_t seed = 0;
  int64_t goal_ps = 0;  // lower bound on the time; the search ends at this time
  int64_t work = 0;     // budget: transfers that are timed, over all changes; undone changes count twice
};

// Returns the improved and normalized schedule, which is no slower by the search's own clock. Returns nullopt
// if a path has several links, if a rank is sent a chunk twice or a chunk that it holds, if there are no
// transfers, or if options.work is 0. Requires: a plain schedule that solves the problem, in an order in
// which chunks arrive before they are passed on. Cost: linear in options.work.
std::optional<Schedule> ImproveSchedule(const CopyProblem& problem, const Schedule& copies,
                                        const ImproveOptions& options);

}  // namespace xccl::greedy
