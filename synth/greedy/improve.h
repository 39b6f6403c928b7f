// Local search on a finished flood: which link brings a chunk to a rank, and in which order links carry
// chunks.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/common/problem.h"
#include "synth/greedy/greedy_move.h"

namespace xccl::greedy {

struct ImproveOptions {
  uint64_t seed = 0;
  int64_t goal_ps = 0;  // at which there is nothing left to gain
  int64_t work = 0;     // transfers timed, in all; 0: nothing is done
};

struct ImproveResult {
  int64_t time_ps = 0;
  std::vector<GreedyMove> moves;
  int64_t work = 0;
};

// Requires: every move is one chunk over one direct link, in an order in which copies exist before they are
// passed on, and no rank is sent a chunk twice. The result is never slower than the moves given.
// Cost: linear in `work`.
ImproveResult Improve(const CopyProblem& problem, const std::vector<GreedyMove>& moves,
                      const ImproveOptions& options);

}  // namespace xccl::greedy
