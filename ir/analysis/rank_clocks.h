// The order that a rank's own threadblocks and dependencies give its instructions, as vector clocks: which
// instructions are certainly done when another starts. Orders through other ranks do not count.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/graph/grouped.h"
#include "base/ids.h"
#include "ir/analysis/program_index.h"

namespace xccl {

// A topological order, split by rank.
Grouped<int32_t> ByRank(const ProgramIndex& index, const std::vector<int32_t>& order);

class RankClocks {
 public:
  // `nodes`: all instructions of the rank in a topological order. Cost: threadblocks of the rank for every
  // instruction with a dependency that tells something new.
  RankClocks(const ProgramIndex& index, Rank rank, std::span<const int32_t> nodes);

  // True if a is done before b starts. Requires: both of this rank. Constant time.
  bool Before(int32_t a, int32_t b) const;

 private:
  const ProgramIndex& index_;
  const int32_t first_block_, first_node_;
  std::vector<int32_t> pool_;    // clocks: for each threadblock its last instruction that is done
  std::vector<int64_t> stored_;  // by instruction: offset of its clock in the pool; -1: none
};

}  // namespace xccl
