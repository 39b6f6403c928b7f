// A plan to start from, as greedy's moves: what local search makes of somebody else's schedule.
#pragma once

#include <optional>

#include "ir/schedule.h"
#include "synth/common/problem.h"
#include "synth/greedy/improve.h"

namespace xccl::greedy {

// A schedule of copies that solves the problem, improved: normalized, by the search's own clock no slower.
// Absent where local search does not take it: a path of several links, a chunk that a rank is sent twice, no
// transfers. Requires: a normalized, plain schedule that verifies. Cost: linear in options.work.
std::optional<Schedule> ImproveSchedule(const CopyProblem& problem, const Schedule& copies,
                                        const ImproveOptions& options);

}  // namespace xccl::greedy
