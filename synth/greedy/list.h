// List scheduling: orders routed transfers on their links, with the longest remaining path first.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/greedy/greedy_move.h"
#include "synth/greedy/trees.h"

namespace xccl::greedy {

// Returns one move for each transfer, in the order in which the transfers start. A message takes more ready
// chunks of its path while it has at most batch_bytes. Cost: n log n in transfers × links of a path.
std::vector<GreedyMove> ListSchedule(const CopyProblem& problem, const Routes& routes, int64_t batch_bytes);

}  // namespace xccl::greedy
