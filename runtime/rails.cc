#include "runtime/rails.h"

#include <optional>

namespace xccl {
namespace {

// By node: its number among the NICs of its host.
std::vector<int32_t> NumberNics(const Topology& topology) {
  std::vector<int32_t> numbers(static_cast<size_t>(topology.num_nodes()), -1);
  std::vector<int32_t> next(static_cast<size_t>(topology.num_hosts()), 0);
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    const Node& node = topology.node(NodeId(n));
    if (node.kind == NodeKind::kNic && node.host)
      numbers[static_cast<size_t>(n)] = next[node.host->index()]++;
  }
  return numbers;
}

}  // namespace

RailFinder::RailFinder(const Topology& topology) : topology_(topology), numbers_(NumberNics(topology)) {}

Rails RailFinder::Of(Rank src, Rank dst, std::span<const LinkId> path) const {
  Rails rails;
  const HostId from = topology_.HostOf(src), to = topology_.HostOf(dst);
  for (const LinkId link : path) {
    const NodeId node = topology_.link(link).to;
    const int32_t number = numbers_[node.index()];
    if (number < 0) continue;
    if (topology_.node(node).host == from) rails.src = number;
    if (topology_.node(node).host == to) rails.dst = number;
  }
  return rails;
}

std::vector<Rails> RailsOf(const Program& program, const Topology& topology) {
  const RailFinder finder(topology);
  std::vector<Rails> rails;
  for (const Connection& connection : program.connections)
    rails.push_back(finder.Of(connection.src, connection.dst, connection.path));
  return rails;
}

void SetRails(const Program& program, std::span<const Rails> rails, Wiring& wiring) {
  wiring.rails.resize(wiring.connections.size());
  for (size_t c = 0; c < program.connections.size(); ++c) {
    const Connection& one = program.connections[c];
    if (const std::optional<int32_t> at = wiring.Find({one.src, one.dst, one.channel}))
      wiring.rails[static_cast<size_t>(*at)] = rails[c];
  }
}

}  // namespace xccl
