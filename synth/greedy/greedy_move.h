// What greedy's searches find: chunks that take paths, before they are a schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/schedule.h"
#include "synth/common/problem.h"

namespace xccl::greedy {

// One chunk moved once. Moves of equal (path, step) are one message. A path id is a link's id for that link
// alone; larger ids are indices into the search's own table.
struct GreedyMove {
  int32_t chunk = 0;
  int32_t path = 0;
  int32_t step = 0;
};

// The table of all links' own paths, id for id.
PathTable LinkPaths(const Topology& topology);

// Copies in the order of the moves; not normalized.
Schedule ScheduleOf(const CopyProblem& problem, const PathTable& paths, const std::vector<GreedyMove>& moves);

}  // namespace xccl::greedy
