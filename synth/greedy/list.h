// The order in which routed transfers take their links: list scheduling, longest remaining path first.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/greedy/greedy_move.h"
#include "synth/greedy/trees.h"

namespace xccl::greedy {

// One move a transfer, in the order in which they start. A message takes further ready chunks of the same
// path while it stays within batch_bytes. Cost: n log n in transfers × links of a path.
std::vector<GreedyMove> ListSchedule(const CopyProblem& problem, const Routes& routes, int64_t batch_bytes);

}  // namespace xccl::greedy
