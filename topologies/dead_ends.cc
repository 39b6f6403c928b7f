// Leaves of the graph are removed one after the other, as when finding the 2-core.
#include "topologies/dead_ends.h"

#include <algorithm>
#include <vector>

namespace xccl {
namespace {

// The number of remaining nodes joined to `node` by a link in either direction; counting stops at two.
int32_t CountNeighbours(const Topology& topology, NodeId node, const std::vector<bool>& gone) {
  std::optional<NodeId> first;
  const auto other = [&](NodeId end) {
    if (gone[end.index()] || (first && *first == end)) return false;
    if (first) return true;
    first = end;
    return false;
  };
  for (LinkId l : topology.Out(node))
    if (other(topology.link(l).to)) return 2;
  for (LinkId l : topology.In(node))
    if (other(topology.link(l).from)) return 2;
  return first ? 1 : 0;
}

}  // namespace

std::optional<Topology> WithoutDeadEnds(const Topology& topology) {
  std::vector<bool> gone(static_cast<size_t>(topology.num_nodes()), false);
  std::vector<NodeId> work;
  for (int32_t n = 0; n < topology.num_nodes(); ++n) work.push_back(NodeId(n));
  bool any = false;
  while (!work.empty()) {
    const NodeId node = work.back();
    work.pop_back();
    if (topology.IsGpu(node) || gone[node.index()] || CountNeighbours(topology, node, gone) > 1) continue;
    gone[node.index()] = true;
    any = any || !topology.Out(node).empty() || !topology.In(node).empty();
    for (LinkId l : topology.Out(node)) work.push_back(topology.link(l).to);
    for (LinkId l : topology.In(node)) work.push_back(topology.link(l).from);
  }
  if (!any) return std::nullopt;
  TopologySpec spec = topology.spec();
  std::erase_if(spec.links, [&](const Link& l) { return gone[l.from.index()] || gone[l.to.index()]; });
  StatusOr<Topology> pruned = Topology::Create(std::move(spec));
  XCCL_CHECK(pruned.ok());
  return std::move(*pruned);
}

}  // namespace xccl
