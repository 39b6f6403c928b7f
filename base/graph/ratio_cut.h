// The worst cut: the set of nodes with the most supply inside for the capacity out of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/graph/cut_search.h"

namespace xccl {

struct RatioCutProblem {
  std::vector<CapacityArc> arcs;
  std::vector<int64_t> supply;  // by node, >= 0: what must get from here to every sink
  std::vector<int32_t> sinks;   // distinct, not empty
  // By node: sinks of one number are alike, because the graph has a symmetry that takes one to the other and
  // keeps all supplies and sinks. One of them is tried. Empty: no two are.
  std::vector<int32_t> alike = {};
};

// supply ÷ capacity is the largest, over sets of nodes that leave out at least one sink, of the supply inside
// ÷ the capacity of the arcs that leave the set: an exact rational, not reduced.
struct RatioCut {
  int64_t supply = 0, capacity = 1;
  bool IsLessThan(const RatioCut& other) const {
    return static_cast<__int128>(supply) * other.capacity < static_cast<__int128>(other.supply) * capacity;
  }
};

// nullopt: a sink cannot be reached from a supply, or supplies or capacities sum to 2^62 or more.
// Cost: one maximum flow for the first sink and mostly local ones for the others, once more from the start
// for each cut that is worse than all before; near linear on rings, trees, fat trees and grids
// whose cables are as wide in both directions.
std::optional<RatioCut> FindRatioCut(RatioCutProblem problem);

}  // namespace xccl
