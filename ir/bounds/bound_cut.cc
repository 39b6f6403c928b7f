#include "ir/bounds/bound_cut.h"

#include <utility>

#include "base/graph/ratio_cut.h"

namespace xccl {

std::optional<WorstCut> FindWorstCut(const Topology& topology, const CutProblem& problem) {
  RatioCutProblem ratio{.arcs = {}, .supply = problem.supply_bytes, .sinks = {}, .alike = problem.alike};
  for (const Link& link : topology.spec().links) {
    CapacityArc arc{link.from.value, link.to.value, link.bandwidth_bytes_per_s};
    if (problem.reversed) std::swap(arc.from, arc.to);
    ratio.arcs.push_back(arc);
  }
  for (NodeId sink : problem.sinks) ratio.sinks.push_back(sink.value);
  const std::optional<RatioCut> cut = FindRatioCut(std::move(ratio));
  if (!cut) return std::nullopt;
  return WorstCut{cut->supply, cut->capacity};
}

}  // namespace xccl
