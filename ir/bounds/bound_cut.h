// The worst cut: the set of nodes with the most supply for the bandwidth of its outgoing links. Bounds of
// one-to-all, all-to-all and many-to-one collectives are this with other bytes and sinks (docs/ir.md, Lower
// bounds).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topologies/topology.h"

namespace xccl {

struct CutProblem {
  bool reversed = false;              // reverses every link
  std::vector<int64_t> supply_bytes;  // by node, >= 0: the bytes that must get from here to every sink
  std::vector<NodeId> sinks;          // distinct, not empty
  // By node: sinks with equal numbers are equivalent, because a symmetry of the machine that keeps all
  // supplies and sinks maps one to the other. Only one of them is tried. Empty: no two are equivalent.
  std::vector<int32_t> alike = {};
};

// The largest supply inside ÷ bandwidth of outgoing links, over all sets of nodes that leave out at least
// one sink: an exact rational bytes ÷ bytes_per_s.
struct WorstCut {
  int64_t bytes = 0;
  int64_t bytes_per_s = 1;
};

// nullopt: a sink cannot be reached from a supply, or the numbers' sums pass 2^62.
// Cost: see base/graph/ratio_cut.h.
std::optional<WorstCut> FindWorstCut(const Topology& topology, const CutProblem& problem);

}  // namespace xccl
