// The moves that greedy's searches find, before they become a schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/schedule.h"
#include "synth/common/problem.h"

namespace xccl::greedy {

// One chunk moved once over one path. Moves with equal path and step form one message. Path i is link i
// alone, for each link of the topology; larger ids are longer paths in the search's own table.
struct GreedyMove {
  int32_t chunk = 0;
  int32_t path = 0;
  int32_t step = 0;
};

// Returns the path table in which path i is link i alone.
PathTable LinkPaths(const Topology& topology);

// Returns a schedule of copies in the order of the moves. The schedule is not normalized.
Schedule ScheduleOf(const CopyProblem& problem, const PathTable& paths, const std::vector<GreedyMove>& moves);

}  // namespace xccl::greedy
