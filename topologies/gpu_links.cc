// A walk from all CPUs and NICs over switches, along links in both directions.
#include "topologies/gpu_links.h"

#include <algorithm>

namespace xccl {

GpuLinks::GpuLinks(const Topology& topology)
    : topology_(topology), other_(static_cast<size_t>(topology.num_nodes()), false) {
  std::vector<NodeId> found;
  const auto add = [&](NodeId node) {
    if (other_[node.index()]) return;
    other_[node.index()] = true;
    found.push_back(node);
  };
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    const NodeKind kind = topology.node(NodeId(n)).kind;
    if (kind == NodeKind::kCpu || kind == NodeKind::kNic) add(NodeId(n));
  }
  while (!found.empty()) {
    const NodeId node = found.back();
    found.pop_back();
    const auto add_switch = [&](NodeId next) {
      if (topology.node(next).kind == NodeKind::kSwitch) add(next);
    };
    for (const LinkId link : topology.Out(node)) add_switch(topology.link(link).to);
    for (const LinkId link : topology.In(node)) add_switch(topology.link(link).from);
  }
}

bool GpuLinks::Have(std::span<const LinkId> path) const {
  return std::ranges::none_of(path, [&](LinkId id) {
    const Link& link = topology_.link(id);
    return other_[link.from.index()] || other_[link.to.index()];
  });
}

}  // namespace xccl
