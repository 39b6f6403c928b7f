// The worst cut: the set of nodes with the most bytes inside for the bandwidth out of it. All one-to-all,
// all-to-all-the-same and many-to-one bounds are this with other bytes and sinks (docs/ir.md, lower bounds).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/collective.h"
#include "topologies/topology.h"

namespace xccl {

struct CutProblem {
  bool reversed = false;              // every link taken from head to tail
  std::vector<int64_t> supply_bytes;  // by node, >= 0: what must get from here to every sink
  std::vector<NodeId> sinks;          // distinct, not empty
  // By node: sinks of one number are alike, because the machine has a symmetry that takes one to the other
  // and keeps all supplies and sinks. One of them is tried. Empty: no two are.
  std::vector<int32_t> alike = {};
};

// bytes ÷ bytes_per_s is the largest, over sets of nodes that leave out at least one sink, of the supply
// inside ÷ the bandwidth of the links that leave the set: an exact rational.
struct WorstCut {
  int64_t bytes = 0;
  int64_t bytes_per_s = 1;
};

// nullopt: a sink cannot be reached from a supply, or the numbers' sums pass 2^62.
// Cost: one maximum flow for the first sink, and mostly local ones for the others.
std::optional<WorstCut> FindWorstCut(const Topology& topology, const CutProblem& problem);

}  // namespace xccl
