// Local search on a finished flood, or on somebody else's schedule of copies: which link brings a chunk to a
// rank, and in which order links carry chunks.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/schedule.h"
#include "synth/common/problem.h"

namespace xccl::greedy {

struct ImproveOptions {
  uint64_t seed = 0;
  int64_t goal_ps = 0;  // at which there is nothing left to gain
  int64_t work = 0;     // transfers timed, in all
};

// A schedule of copies that solves the problem, improved: normalized, by the search's own clock no slower.
// Absent where local search does not take it: a path of several links, a chunk that a rank is sent twice or
// holds from the start, no transfers, no work. Requires: a plain schedule that delivers, in an order in which
// copies exist before they are passed on. Cost: linear in options.work.
std::optional<Schedule> ImproveSchedule(const CopyProblem& problem, const Schedule& copies,
                                        const ImproveOptions& options);

}  // namespace xccl::greedy
