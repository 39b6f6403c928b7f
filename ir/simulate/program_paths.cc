#include "ir/simulate/program_paths.h"

#include <algorithm>

namespace xccl {

GroupTree TreeOf(const Program& program, const Group& group, const Topology& topology) {
  const size_t hops = group.path.size();
  GroupTree tree;
  tree.next.resize(hops);
  tree.feeds.assign(hops, 0);
  tree.delivers.resize(hops);
  std::vector<std::vector<int32_t>> out_of(static_cast<size_t>(topology.num_nodes()));
  for (size_t h = 0; h < hops; ++h)
    out_of[topology.link(group.path[h]).from.index()].push_back(static_cast<int32_t>(h));
  const std::vector<int32_t> connections = ConnectionsOf(program, group);
  for (size_t h = 0; h < hops; ++h) {
    const NodeId to = topology.link(group.path[h]).to;
    if (topology.IsGpu(to)) {
      if (group.kind == Group::Kind::kReduce) {
        tree.delivers[h] = connections;
        continue;
      }
      const auto at = std::ranges::lower_bound(group.members, *topology.RankOf(to)) - group.members.begin();
      tree.delivers[h] = {connections[static_cast<size_t>(at)]};
      continue;
    }
    tree.next[h] = out_of[to.index()];
    for (int32_t next : tree.next[h]) ++tree.feeds[static_cast<size_t>(next)];
  }
  for (size_t h = 0; h < hops; ++h) tree.join.push_back(tree.feeds[h] > 1 ? tree.num_joins++ : -1);
  for (Rank member : group.members) {
    tree.first_hop.push_back(out_of[topology.NodeOf(BranchOf(group, member).src).index()].front());
  }
  return tree;
}

std::vector<int32_t> ConnectionsOf(const Program& program, const Group& group) {
  std::vector<int32_t> connections;
  for (Rank member : group.members)
    connections.push_back(static_cast<int32_t>(FindBranch(program, group, member)));
  return connections;
}

std::vector<int32_t> GroupsOfConnections(const Program& program) {
  std::vector<int32_t> group_of(program.connections.size(), -1);
  for (size_t g = 0; g < program.groups.size(); ++g) {
    if (!HasSwitch(program.groups[g])) continue;
    for (int32_t c : ConnectionsOf(program, program.groups[g]))
      group_of[static_cast<size_t>(c)] = static_cast<int32_t>(g);
  }
  return group_of;
}

}  // namespace xccl
