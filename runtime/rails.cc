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

std::vector<Rails> RailsOf(const Program& program, const Topology& topology) {
  const std::vector<int32_t> numbers = NumberNics(topology);
  std::vector<Rails> rails;
  for (const Connection& connection : program.connections) {
    Rails& own = rails.emplace_back();
    const HostId from = topology.HostOf(connection.src), to = topology.HostOf(connection.dst);
    const auto visit = [&](NodeId n) {
      const int32_t number = numbers[n.index()];
      if (number < 0) return;
      if (topology.node(n).host == from) own.src = number;
      if (topology.node(n).host == to) own.dst = number;
    };
    for (const LinkId link : connection.path) visit(topology.link(link).to);
  }
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
