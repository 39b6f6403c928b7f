// The best path of two ranks has a width and a number of links. All paths like it are searched layer by
// layer, which finds the one whose most loaded link would be loaded least.
#include "ir/interchange/place_paths.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "ir/program_index.h"
#include "topologies/paths.h"

namespace xccl {
namespace {

// What a connection carries, as a share of the collective's data.
std::vector<double> Loads(const Program& program, const Collective& collective) {
  const ProgramIndex index(program);
  std::vector<double> loads(program.connections.size());
  for (int32_t node = 0; node < index.size(); ++node) {
    const Instruction& i = index.instruction(node);
    if (!Sends(i.op)) continue;
    const Rank rank = index.Site(node).rank;
    const Operand& operand = ReadsSource(i.op) ? i.src : i.dst;
    const std::vector<ChunkId> slots = SlotChunks(program, collective, rank, operand.buffer);
    double load = 0;
    for (int32_t k = 0; k < i.count; ++k) {
      const ChunkId c = slots[static_cast<size_t>(operand.slot + k)];
      const int64_t all = collective.PartWeight(collective.PartOf(c));
      if (all > 0) load += static_cast<double>(collective.Weight(c)) / static_cast<double>(all);
    }
    for (const int32_t connection : index.SendConnections(index.BlockOf(node)))
      loads[static_cast<size_t>(connection)] += load;
  }
  return loads;
}

class Placer {
 public:
  explicit Placer(const Topology& topology)
      : topology_(topology),
        loads_(static_cast<size_t>(topology.num_links())),
        reached_(static_cast<size_t>(topology.num_nodes()), -1) {}

  // The path for a connection that carries `load`, which is added to its links.
  StatusOr<std::vector<LinkId>> Place(const Connection& connection, double load) {
    const NeighbourTable& neighbours =
        neighbours_.try_emplace(connection.src.value, GpuNeighboursOf(topology_, connection.src))
            .first->second;
    const Neighbour* best = neighbours.Find(0, connection.dst);
    if (best == nullptr)
      return InvalidInput(fmt::format(
          "rank {} -> rank {}: no path on {} that passes no other GPU; expected one for every connection",
          connection.src.value, connection.dst.value, topology_.name()));
    std::vector<LinkId> path = LeastLoaded(connection, *best, load);
    for (const LinkId link : path) loads_[link.index()] += load;
    return path;
  }

 private:
  struct Arrival {
    NodeId node;
    double worst = 0;  // seconds that the busiest link up to here would be busy
    int32_t before = -1;
    LinkId link;
  };

  std::vector<LinkId> LeastLoaded(const Connection& connection, const Neighbour& best, double load) {
    const NodeId end = topology_.NodeOf(connection.dst);
    std::vector<Arrival> arrivals = {{topology_.NodeOf(connection.src), 0, -1, LinkId(0)}};
    size_t first = 0;
    for (size_t hop = 1; hop <= best.path.size(); ++hop) {
      const size_t last = arrivals.size();
      for (size_t a = first; a < last; ++a) {
        for (const LinkId l : topology_.Out(arrivals[a].node)) {
          const Link& link = topology_.link(l);
          if (link.bandwidth_bytes_per_s < best.bandwidth_bytes_per_s) continue;
          if (hop == best.path.size() ? link.to != end : topology_.RankOf(link.to).has_value()) continue;
          const double busy = (loads_[l.index()] + load) / static_cast<double>(link.bandwidth_bytes_per_s);
          const Arrival next{link.to, std::max(busy, arrivals[a].worst), static_cast<int32_t>(a), l};
          int32_t& at = reached_[link.to.index()];
          if (at < static_cast<int32_t>(last)) {
            at = static_cast<int32_t>(arrivals.size());
            arrivals.push_back(next);
          } else if (next.worst < arrivals[static_cast<size_t>(at)].worst) {
            arrivals[static_cast<size_t>(at)] = next;
          }
        }
      }
      first = last;
    }
    std::vector<LinkId> path;
    for (int32_t a = reached_[end.index()]; arrivals[static_cast<size_t>(a)].before >= 0;
         a = arrivals[static_cast<size_t>(a)].before)
      path.push_back(arrivals[static_cast<size_t>(a)].link);
    std::ranges::reverse(path);
    for (const Arrival& arrival : arrivals) reached_[arrival.node.index()] = -1;
    return path;
  }

  const Topology& topology_;
  std::map<int32_t, NeighbourTable> neighbours_;  // by rank
  std::vector<double> loads_;                     // by link
  std::vector<int32_t> reached_;                  // by node: its last arrival
};

}  // namespace

Status PlacePaths(Program& program, const Collective& collective, const Topology& topology) {
  if (program.ranks.size() != topology.num_ranks())
    return InvalidInput(fmt::format("{}: {} ranks; expected {}, as the plan has", topology.name(),
                                    topology.num_ranks(), program.ranks.size()));
  const std::vector<double> loads = Loads(program, collective);
  std::vector<size_t> order(loads.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return loads[a] > loads[b]; });
  Placer placer(topology);
  for (const size_t c : order) {
    XCCL_ASSIGN_OR_RETURN(program.connections[c].path, placer.Place(program.connections[c], loads[c]));
  }
  return OkStatus();
}

}  // namespace xccl
