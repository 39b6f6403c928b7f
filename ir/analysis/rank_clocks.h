// Vector clocks of one rank: which of its instructions are certainly done when another one starts. The order
// follows from the rank's own threadblocks and their dependencies. Orders that arise from messages of other
// ranks do not count.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/graph/grouped.h"
#include "base/ids.h"
#include "ir/analysis/program_index.h"

namespace xccl {

// Returns a topological order, split by rank.
Grouped<int32_t> ByRank(const ProgramIndex& index, const std::vector<int32_t>& order);

class RankClocks {
 public:
  // `nodes`: all instructions of the rank in a topological order. Cost: the number of the rank's
  // threadblocks, for every instruction with a dependency that raises its clock.
  RankClocks(const ProgramIndex& index, Rank rank, std::span<const int32_t> nodes);

  // Returns whether a is done before b starts. Requires: both are instructions of this rank. Constant time.
  bool Before(int32_t a, int32_t b) const;

 private:
  const ProgramIndex& index_;
  const int32_t first_block_, first_node_;
  std::vector<int32_t> pool_;    // clocks; each has for every threadblock the last instruction that is done
  std::vector<int64_t> stored_;  // by instruction: where its clock begins in pool_; -1: no clock
};

}  // namespace xccl
