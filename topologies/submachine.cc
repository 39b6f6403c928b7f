#include "topologies/submachine.h"

#include <algorithm>
#include <utility>

namespace xccl {
namespace {

constexpr int32_t kGone = -1;

std::vector<bool> IsIdleGpu(const Topology& topology, std::span<const Rank> members) {
  std::vector<bool> idle(static_cast<size_t>(topology.num_nodes()), false);
  for (int32_t r = 0; r < topology.num_ranks(); ++r) idle[topology.NodeOf(Rank(r)).index()] = true;
  for (Rank r : members) idle[topology.NodeOf(r).index()] = false;
  return idle;
}

// Finds the nodes on a path from one member to another that visits no node twice; links count in either
// direction. Searches depth-first from a member: a subtree is on no such path if it has no member and
// reaches nothing above its parent (Hopcroft and Tarjan 1973, blocks of a graph).
class BetweenMembers {
 public:
  BetweenMembers(const Topology& topology, std::span<const Rank> members)
      : topology_(topology),
        idle_(IsIdleGpu(topology, members)),
        nodes_(static_cast<size_t>(topology.num_nodes())),
        kept_(nodes_.size(), false) {
    for (Rank r : members) nodes_[topology.NodeOf(r).index()].members = 1;
    for (Rank r : members)
      if (nodes_[topology.NodeOf(r).index()].order == kGone) Search(topology.NodeOf(r));
  }

  const std::vector<bool>& kept() const { return kept_; }

 private:
  struct State {
    int32_t order = kGone;   // position in the order of visits
    int32_t lowest = kGone;  // the lowest `order` next to it or to a node below it
    int32_t parent = kGone;
    int32_t members = 0;  // among it and the nodes below it
  };
  NodeId Neighbour(NodeId n, size_t i) const {
    const std::span<const LinkId> out = topology_.Out(n);
    return i < out.size() ? topology_.link(out[i]).to : topology_.link(topology_.In(n)[i - out.size()]).from;
  }
  size_t Degree(NodeId n) const { return topology_.Out(n).size() + topology_.In(n).size(); }

  void Search(NodeId root) {
    const size_t first = met_.size();
    std::vector<std::pair<NodeId, size_t>> stack;  // nodes, each with the index of its next neighbour
    const auto meet = [&](NodeId n, int32_t parent) {
      nodes_[n.index()].order = nodes_[n.index()].lowest = static_cast<int32_t>(met_.size());
      nodes_[n.index()].parent = parent;
      met_.push_back(n);
      stack.emplace_back(n, 0);
    };
    meet(root, kGone);
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      if (next == Degree(n)) {
        stack.pop_back();
        continue;
      }
      const NodeId other = Neighbour(n, next++);
      if (idle_[other.index()]) continue;
      State& node = nodes_[n.index()];
      if (nodes_[other.index()].order == kGone)
        meet(other, n.value);
      else
        node.lowest = std::min(node.lowest, nodes_[other.index()].order);
    }
    for (size_t i = met_.size(); i-- > first + 1;) {
      const State& node = nodes_[met_[i].index()];
      State& parent = nodes_[static_cast<size_t>(node.parent)];
      parent.lowest = std::min(parent.lowest, node.lowest);
      parent.members += node.members;
    }
    kept_[root.index()] = true;
    for (size_t i = first + 1; i < met_.size(); ++i) {
      const State& node = nodes_[met_[i].index()];
      kept_[met_[i].index()] =
          kept_[node.parent] && (node.members > 0 || node.lowest < nodes_[node.parent].order);
    }
  }

  const Topology& topology_;
  const std::vector<bool> idle_;
  std::vector<State> nodes_;
  std::vector<bool> kept_;  // by node
  std::vector<NodeId> met_;
};

// Copies the kept items. Returns the new index of each item, or kGone.
template <typename Item>
std::vector<int32_t> Keep(const std::vector<Item>& items, const std::vector<bool>& kept,
                          std::vector<Item>& copies) {
  std::vector<int32_t> place(items.size(), kGone);
  for (size_t i = 0; i < items.size(); ++i) {
    if (!kept[i]) continue;
    place[i] = static_cast<int32_t>(copies.size());
    copies.push_back(items[i]);
  }
  return place;
}

// The topology without the links that leave or enter a node of `alone`; all nodes stay.
TopologySpec Without(const Topology& topology, const std::vector<bool>& alone) {
  TopologySpec spec = topology.spec();
  std::erase_if(spec.links, [&](const Link& l) { return alone[l.from.index()] || alone[l.to.index()]; });
  return spec;
}

}  // namespace

Topology WithoutRelays(const Topology& topology, std::span<const Rank> members) {
  return Topology::Create(Without(topology, IsIdleGpu(topology, members))).value();
}

std::optional<Topology> WithoutDeadEnds(const Topology& topology) {
  std::vector<bool> dead = BetweenMembers(topology, AllRanks(topology.num_ranks())).kept();
  dead.flip();
  TopologySpec spec = Without(topology, dead);
  if (spec.links.size() == topology.spec().links.size()) return std::nullopt;
  return Topology::Create(std::move(spec)).value();
}

Submachine MembersAlone(const Topology& topology, std::span<const Rank> members) {
  const std::vector<bool> kept_node = BetweenMembers(topology, members).kept();
  const TopologySpec& whole = topology.spec();
  std::vector<bool> kept_host(whole.hosts.size(), false), kept_link(whole.links.size(), false);
  for (size_t n = 0; n < whole.nodes.size(); ++n)
    if (kept_node[n] && whole.nodes[n].host) kept_host[whole.nodes[n].host->index()] = true;
  std::vector<LinkId> links;
  for (size_t l = 0; l < whole.links.size(); ++l) {
    kept_link[l] = kept_node[whole.links[l].from.index()] && kept_node[whole.links[l].to.index()];
    if (kept_link[l]) links.push_back(LinkId(static_cast<int64_t>(l)));
  }
  TopologySpec spec;
  spec.name = whole.name;
  spec.gpu_arch = whole.gpu_arch;
  Keep(whole.links, kept_link, spec.links);
  const std::vector<int32_t> host = Keep(whole.hosts, kept_host, spec.hosts);
  const std::vector<int32_t> node = Keep(whole.nodes, kept_node, spec.nodes);
  for (Node& n : spec.nodes)
    if (n.host) n.host = HostId(host[n.host->index()]);
  for (Link& l : spec.links) {
    l.from = NodeId(node[l.from.index()]);
    l.to = NodeId(node[l.to.index()]);
  }
  std::vector<Rank> ranks(members.begin(), members.end());
  std::ranges::sort(ranks);
  return {Topology::Create(std::move(spec)).value(), std::move(ranks), std::move(links)};
}

}  // namespace xccl
