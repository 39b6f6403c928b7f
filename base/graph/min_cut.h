// The minimum cut between two nodes.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/graph/cut_search.h"

namespace xccl {

// Capacity of an arc that no minimum cut should take.
inline constexpr int64_t kUnlimitedCapacity = int64_t{1} << 61;

struct MinimumCut {
  int64_t capacity = 0;           // the maximum flow; at most kUnlimitedCapacity
  std::vector<bool> source_side;  // by node: the smallest such set that holds the source
};

// Requires: source != sink. Memory: that of the arcs. Exact on graphs with any number of levels.
MinimumCut FindMinCut(int32_t nodes, const std::vector<CapacityArc>& arcs, int32_t source, int32_t sink);

}  // namespace xccl
