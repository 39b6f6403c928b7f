// CutSearch finds the smallest set around its sink: here that is the source, with all arcs turned round.
#include "base/graph/min_cut.h"

#include "base/status.h"

namespace xccl {

MinimumCut FindMinCut(int32_t nodes, const std::vector<CapacityArc>& arcs, int32_t source, int32_t sink) {
  XCCL_CHECK(source != sink);
  std::vector<CapacityArc> turned;
  turned.reserve(arcs.size());
  for (const CapacityArc& arc : arcs) turned.push_back({arc.to, arc.from, arc.capacity});
  CutSearch<int64_t> search(nodes, turned);
  const std::vector<int64_t> none(static_cast<size_t>(nodes), 0);
  search.Start(none);
  search.MakeSource(sink);
  MinimumCut cut;
  cut.capacity = search.Bring(source, kUnlimitedCapacity);
  cut.source_side.assign(static_cast<size_t>(nodes), false);
  for (int32_t node : search.Inside()) cut.source_side[static_cast<size_t>(node)] = true;
  return cut;
}

}  // namespace xccl
