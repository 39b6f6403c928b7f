// The moves that greedy's searches find, before they become a schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/schedule.h"
#include "synth/common/problem.h"

namespace xccl::greedy {

// One chunk moved once. Moves of equal (path, step) are one message. Path i is link i alone, for each link;
// larger ids are paths of the search's own table.
struct GreedyMove {
  int32_t chunk = 0;
  int32_t path = 0;
  int32_t step = 0;
};

// The table in which path i is link i alone.
PathTable LinkPaths(const Topology& topology);

// Copies in the order of the moves; not normalized.
Schedule ScheduleOf(const CopyProblem& problem, const PathTable& paths, const std::vector<GreedyMove>& moves);

}  // namespace xccl::greedy
