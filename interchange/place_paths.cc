// The best path of two ranks has a width and a number of links. All paths like it are searched layer by
// layer, which finds the one whose most loaded link would be loaded least. A group has one path through each
// switch that joins its ranks.
#include "interchange/place_paths.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/analysis/program_index.h"
#include "ir/verify/verify_path.h"
#include "topologies/paths.h"

namespace xccl {
namespace {

// The load of each connection: the weights of the chunks that it carries, each as a share of its part.
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

  // Chooses the switch and the paths of a group; each of its connections gets its branch as path. `load` is
  // added to their links.
  Status PlaceGroup(Group& group, double load, Program& program) {
    const bool out = group.kind == Group::Kind::kMulticast;
    double least = 0;
    group.path.clear();
    for (NodeId at(0); at.value < topology_.num_nodes(); ++at.value) {
      const Node& node = topology_.node(at);
      if (node.kind != NodeKind::kSwitch || !(out ? node.multicast : node.reduce)) continue;
      std::vector<LinkId> path;
      const auto add = [&](Rank rank, bool leaves) {
        const std::optional<LinkId> link = Direct(topology_.NodeOf(rank), at, leaves, load);
        if (link) path.push_back(*link);
      };
      if (out) add(group.root, true);
      for (const Rank m : group.members) add(m, !out);
      if (!out) add(group.root, false);
      if (path.size() <= group.members.size()) continue;
      double worst = 0;
      for (const LinkId l : path) worst = std::max(worst, Busy(l, load));
      if (!group.path.empty() && worst >= least) continue;
      least = worst;
      group.path = std::move(path);
    }
    if (group.path.empty())
      return InvalidInput(
          fmt::format("the {} of rank {} and {} others: no switch on {} that does it has links to all of "
                      "them; expected one",
                      ToString(group.kind), group.root.value, group.members.size(), topology_.name()));
    for (const LinkId link : group.path) loads_[link.index()] += load;
    for (size_t m = 0; m < group.members.size(); ++m)
      program.connections[FindBranch(program, group, group.members[m])].path =
          out ? std::vector<LinkId>{group.path.front(), group.path[m + 1]}
              : std::vector<LinkId>{group.path[m], group.path.back()};
    return OkStatus();
  }

 private:
  double Busy(LinkId l, double load) const {
    return (loads_[l.index()] + load) / static_cast<double>(topology_.link(l).bandwidth_bytes_per_s);
  }
  // The least loaded link between a GPU and a switch.
  std::optional<LinkId> Direct(NodeId gpu, NodeId at, bool leaves, double load) const {
    std::optional<LinkId> best;
    for (const LinkId l : leaves ? topology_.Out(gpu) : topology_.In(gpu)) {
      const NodeId other = leaves ? topology_.link(l).to : topology_.link(l).from;
      if (other == at && (!best || Busy(l, load) < Busy(*best, load))) best = l;
    }
    return best;
  }

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
          const Arrival next{link.to, std::max(Busy(l, load), arrivals[a].worst), static_cast<int32_t>(a), l};
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

// True: each path of the program is one of the machine. Sets the branches of groups.
bool PathsFit(Program& program, const Topology& topology) {
  PathChecker checker(topology);
  std::vector<bool> branches(program.connections.size());
  for (const Group& group : program.groups) {
    const bool out = group.kind == Group::Kind::kMulticast;
    const PathShape shape = checker.Check(group.path);
    if (!shape.ok) return false;
    const std::vector<Rank>& leaves = out ? shape.destinations : shape.sources;
    if ((out ? shape.sources : shape.destinations) != std::vector<Rank>{group.root} ||
        leaves.size() != group.members.size())
      return false;
    std::vector<std::vector<LinkId>> chains = checker.Branches(group.path, shape);
    for (size_t m = 0; m < leaves.size(); ++m) {
      if (std::ranges::find(group.members, leaves[m]) == group.members.end()) return false;
      const size_t c = FindBranch(program, group, leaves[m]);
      program.connections[c].path = std::move(chains[m]);
      branches[c] = true;
    }
  }
  for (size_t c = 0; c < branches.size(); ++c) {
    if (branches[c]) continue;
    const Connection& connection = program.connections[c];
    const PathShape shape = checker.Check(connection.path);
    if (!shape.ok || shape.sources != std::vector<Rank>{connection.src} ||
        shape.destinations != std::vector<Rank>{connection.dst})
      return false;
  }
  return true;
}

}  // namespace

StatusOr<int64_t> PlacePaths(Program& program, const Collective& collective, const Topology& topology) {
  if (program.ranks.size() != topology.num_ranks())
    return InvalidInput(fmt::format("{}: {} ranks; expected {}, as the plan has", topology.name(),
                                    topology.num_ranks(), program.ranks.size()));
  const auto named = [](const auto& entry) { return !entry.path.empty(); };
  const int64_t hints =
      std::ranges::count_if(program.connections, named) + std::ranges::count_if(program.groups, named);
  if (hints > 0 && PathsFit(program, topology)) return 0;
  const std::vector<double> loads = Loads(program, collective);
  std::vector<size_t> order(loads.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return loads[a] > loads[b]; });
  Placer placer(topology);
  std::vector<bool> placed(loads.size());
  for (Group& group : program.groups) {
    for (const Rank m : group.members) placed[FindBranch(program, group, m)] = true;
    const size_t first = FindBranch(program, group, group.members[0]);
    XCCL_RETURN_IF_ERROR(placer.PlaceGroup(group, loads[first], program));
  }
  for (const size_t c : order) {
    if (placed[c]) continue;
    XCCL_ASSIGN_OR_RETURN(program.connections[c].path, placer.Place(program.connections[c], loads[c]));
  }
  return hints;
}

}  // namespace xccl
