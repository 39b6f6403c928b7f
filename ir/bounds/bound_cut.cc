#include "ir/bounds/bound_cut.h"

#include <utility>

namespace xccl {

RatioCutProblem CutsOf(const Topology& topology, bool reversed) {
  RatioCutProblem problem;
  problem.supply.assign(static_cast<size_t>(topology.num_nodes()), 0);
  for (const Link& link : topology.spec().links) {
    CapacityArc& arc =
        problem.arcs.emplace_back(CapacityArc{link.from.value, link.to.value, link.bandwidth_bytes_per_s});
    if (reversed) std::swap(arc.from, arc.to);
  }
  return problem;
}

}  // namespace xccl
