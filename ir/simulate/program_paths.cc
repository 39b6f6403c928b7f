#include "ir/simulate/program_paths.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace xccl {
namespace {

Status CheckChain(const Connection& c, const std::string& where, const Topology& topology) {
  NodeId at = topology.NodeOf(c.src);
  for (LinkId l : c.path) {
    if (l.value < 0 || l.value >= topology.num_links() || topology.link(l).from != at)
      return InvalidInput(fmt::format("{}: link {} does not leave {}; expected a chain of links of {}", where,
                                      l.value, topology.NodeName(at), topology.name()));
    at = topology.link(l).to;
  }
  if (at != topology.NodeOf(c.dst))
    return InvalidInput(fmt::format("{}: its path ends at {}; expected {}", where, topology.NodeName(at),
                                    topology.NodeName(topology.NodeOf(c.dst))));
  return OkStatus();
}

// Checks a tree of links from its root: forwards for a multicast, backwards for a reduction.
Status CheckTree(const Group& group, const std::string& where, const Topology& topology) {
  const bool multicast = group.kind == Group::Kind::kMulticast;
  std::vector<int32_t> below(static_cast<size_t>(topology.num_nodes()),
                             -1);  // by node: links towards the leaves, -1 if not reached
  below[topology.NodeOf(group.root).index()] = 0;
  for (size_t i = 0; i < group.path.size(); ++i) {
    const LinkId l = group.path[multicast ? i : group.path.size() - 1 - i];
    if (l.value < 0 || l.value >= topology.num_links())
      return InvalidInput(fmt::format("{}: link {}; expected links of {}", where, l.value, topology.name()));
    const Link& link = topology.link(l);
    const NodeId near = multicast ? link.from : link.to, far = multicast ? link.to : link.from;
    const Node& node = topology.node(near);
    if (below[near.index()] < 0 || below[far.index()] >= 0)
      return InvalidInput(fmt::format("{}: link {} does not go on the tree; expected one {} rank {}", where,
                                      l.value, multicast ? "out of" : "into", group.root.value));
    if (++below[near.index()] > 1 && !(multicast ? node.multicast : node.reduce))
      return InvalidInput(fmt::format("{}: several links meet at {}, which does not {}", where,
                                      topology.NodeName(near), ToString(group.kind)));
    below[far.index()] = 0;
  }
  size_t leaves = 0;
  for (Rank r(0); r.value < topology.num_ranks(); ++r.value) {
    if (below[topology.NodeOf(r).index()] < 0 || r == group.root) continue;
    ++leaves;
    if (below[topology.NodeOf(r).index()] > 0 || !std::ranges::binary_search(group.members, r))
      return InvalidInput(
          fmt::format("{}: its path passes rank {}; expected members at its ends alone", where, r.value));
  }
  if (leaves != group.members.size())
    return InvalidInput(
        fmt::format("{}: its path has {} members; expected {}", where, leaves, group.members.size()));
  return OkStatus();
}

}  // namespace

Status CheckPaths(const Program& program, const Topology& topology) {
  const std::vector<int32_t> group_of = GroupsOfConnections(program);
  for (size_t i = 0; i < program.connections.size(); ++i) {
    const Connection& c = program.connections[i];
    const std::string where =
        fmt::format("connection {}->{} channel {}", c.src.value, c.dst.value, c.channel);
    if (c.src.value >= topology.num_ranks() || c.dst.value >= topology.num_ranks())
      return InvalidInput(fmt::format("{}: expected ranks 0..{}", where, topology.num_ranks() - 1));
    if (c.path.empty() && group_of[i] >= 0) continue;
    if (c.path.empty())
      return InvalidInput(fmt::format("{}: no path; expected links of {}", where, topology.name()));
    XCCL_RETURN_IF_ERROR(CheckChain(c, where, topology));
  }
  for (const Group& group : program.groups) {
    const std::string where = fmt::format("{} group of rank {} on channel {}", ToString(group.kind),
                                          group.root.value, group.channel);
    if (group.path.empty())
      return InvalidInput(fmt::format("{}: no path; expected links of {}", where, topology.name()));
    XCCL_RETURN_IF_ERROR(CheckTree(group, where, topology));
  }
  return OkStatus();
}

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
    const Rank from = group.kind == Group::Kind::kReduce ? member : group.root;
    tree.first_hop.push_back(out_of[topology.NodeOf(from).index()].front());
  }
  return tree;
}

std::vector<int32_t> ConnectionsOf(const Program& program, const Group& group) {
  std::vector<int32_t> connections;
  const bool multicast = group.kind == Group::Kind::kMulticast;
  for (Rank member : group.members)
    connections.push_back(FindConnection(program, multicast ? group.root : member,
                                         multicast ? member : group.root, group.channel)
                              .value());
  return connections;
}

std::vector<int32_t> GroupsOfConnections(const Program& program) {
  std::vector<int32_t> group_of(program.connections.size(), -1);
  for (size_t g = 0; g < program.groups.size(); ++g)
    for (int32_t c : ConnectionsOf(program, program.groups[g]))
      group_of[static_cast<size_t>(c)] = static_cast<int32_t>(g);
  return group_of;
}

}  // namespace xccl
