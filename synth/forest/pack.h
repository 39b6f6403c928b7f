// Packs spanning out-trees into a capacity graph: for every root its demand, the shallowest trees first.
// Edmonds 1973; per-arc test after Berczi and Frank 2010.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "synth/forest/graph.h"

namespace xccl::forest {

struct LogicalTree {
  int32_t root = 0;            // node
  int64_t weight = 0;          // trees of this form
  std::vector<int32_t> arcs;   // of the graph, parents before children
  std::vector<int32_t> depth;  // of each arc, from 1
};

struct PackOptions {
  int64_t grain = 4;  // a root's trees are placed at most (demand ÷ grain) at a time, all roots in turn
};

// Trees whose weights add up to every root's demand and load no arc beyond its capacity. Requires: all
// demands can be met (CutOracle), all nodes with capacity are members. Errors: kLimit when `work`, counted
// down, is used up. Cost: about one flow a member and tree.
StatusOr<std::vector<LogicalTree>> PackTrees(const CapacityGraph& graph, const Demands& demands,
                                             const std::vector<int32_t>& members, const PackOptions& options,
                                             int64_t& work);

}  // namespace xccl::forest
