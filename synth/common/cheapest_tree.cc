// 1. SetPrices runs Dijkstra's search from each member for the costs of the paths to the other members.
// 2. CheapestArborescence builds a tree of these paths. Every node but the root takes the cheapest arc into
//    it.
// 3. If chosen arcs form circles, each circle becomes one node of the next level. On that level, an arc costs
//    its own cost less the cost of the chosen arc that it would replace. Step 2 repeats on the next level.
// 4. Back down, level by level, the tree enters each circle at one node. The circle drops its own arc into
//    that node.
// 5. Grow attaches the paths of the tree to a TreeGrower, parents first.
#include "synth/common/cheapest_tree.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace xccl {
namespace {

struct Arc {
  int32_t from, to;
  double cost;
  int32_t below;  // index of the arc that this arc stands for, on the level below; -1 on the lowest level
};

struct Level {
  int32_t nodes = 0, root = 0;
  std::vector<Arc> arcs;
  std::vector<int32_t> cheapest;  // by node: index of the cheapest arc into it; -1 at the root
};

void ChooseCheapest(Level& level) {
  level.cheapest.assign(static_cast<size_t>(level.nodes), -1);
  for (size_t a = 0; a < level.arcs.size(); ++a) {
    const Arc& arc = level.arcs[a];
    int32_t& best = level.cheapest[arc.to];
    if (arc.to != level.root && (best < 0 || arc.cost < level.arcs[best].cost))
      best = static_cast<int32_t>(a);
  }
}

// Returns for each node the number of its node on the next level, or an empty vector if there are no circles.
// Sets nodes_above to the number of nodes on the next level.
std::vector<int32_t> ContractCircles(const Level& level, int32_t& nodes_above) {
  std::vector<int32_t> above(static_cast<size_t>(level.nodes), -1), seen(above);
  nodes_above = 0;
  for (int32_t start = 0; start < level.nodes; ++start) {
    int32_t at = start;
    for (; at != level.root && seen[at] < 0; at = level.arcs[level.cheapest[at]].from) seen[at] = start;
    if (at == level.root || seen[at] != start) continue;  // the walk met the root or an earlier walk
    for (; above[at] < 0; at = level.arcs[level.cheapest[at]].from) above[at] = nodes_above;
    ++nodes_above;
  }
  if (nodes_above == 0) return {};
  for (int32_t& node : above)
    if (node < 0) node = nodes_above++;
  return above;
}

Level Above(const Level& level, const std::vector<int32_t>& above, int32_t nodes) {
  Level next{.nodes = nodes, .root = above[level.root], .arcs = {}, .cheapest = {}};
  for (size_t a = 0; a < level.arcs.size(); ++a) {
    const Arc& arc = level.arcs[a];
    if (above[arc.from] == above[arc.to] || arc.to == level.root) continue;
    next.arcs.push_back({above[arc.from], above[arc.to], arc.cost - level.arcs[level.cheapest[arc.to]].cost,
                         static_cast<int32_t>(a)});
  }
  return next;
}

}  // namespace

std::vector<int32_t> CheapestArborescence(int32_t nodes, int32_t root, std::span<const double> cost) {
  std::vector<Level> levels(1);
  levels[0].nodes = nodes;
  levels[0].root = root;
  for (int32_t from = 0; from < nodes; ++from)
    for (int32_t to = 0; to < nodes; ++to)
      if (const double c = cost[static_cast<size_t>(from) * static_cast<size_t>(nodes) + to];
          from != to && to != root && c < std::numeric_limits<double>::infinity())
        levels[0].arcs.push_back({from, to, c, -1});
  while (true) {
    ChooseCheapest(levels.back());
    int32_t nodes_above = 0;
    const std::vector<int32_t> above = ContractCircles(levels.back(), nodes_above);
    if (above.empty()) break;
    levels.push_back(Above(levels.back(), above, nodes_above));
  }
  for (size_t l = levels.size() - 1; l > 0; --l)
    for (const int32_t a : levels[l].cheapest) {
      if (a < 0) continue;
      const int32_t below = levels[l].arcs[a].below;
      levels[l - 1].cheapest[levels[l - 1].arcs[below].to] = below;
    }
  std::vector<int32_t> parent(static_cast<size_t>(nodes), -1);
  for (int32_t n = 0; n < nodes; ++n)
    if (n != root) parent[n] = levels[0].arcs[levels[0].cheapest[n]].from;
  return parent;
}

CheapestTrees::CheapestTrees(const Topology& topology, std::span<const Rank> members, BlockedLinks blocked)
    : topology_(topology),
      members_(members.begin(), members.end()),
      blocked_(std::move(blocked)),
      grower_(topology, members, Branching::kNone),
      member_at_(static_cast<size_t>(topology.num_nodes()), -1),
      search_(members.size()) {
  for (size_t m = 0; m < members.size(); ++m)
    member_at_[topology.NodeOf(members[m]).index()] = static_cast<int32_t>(m);
}

void CheapestTrees::SetPrices(std::span<const double> cost, double s_per_ps) {
  price_.assign(cost.begin(), cost.end());
  cost_.assign(members_.size() * members_.size(), std::numeric_limits<double>::infinity());
  for (size_t m = 0; m < members_.size(); ++m) FindPaths(m, cost, s_per_ps);
}

// Runs Dijkstra's search over places (node, speed of the path so far). The search does not continue beyond
// other members. It skips a place if a faster place of the same node has no higher label, because the faster
// place is as good for any continuation. Skipping also prevents paths that visit a node twice over detours
// without cost.
void CheapestTrees::FindPaths(size_t member, std::span<const double> cost, double s_per_ps) {
  const auto speeds = static_cast<size_t>(blocked_.num_speeds());
  const size_t places = member_at_.size() * speeds;
  const bool backwards = blocked_.backwards();
  std::vector<double> label(places, std::numeric_limits<double>::infinity());
  Search& search = search_[member];
  search.via.assign(places, LinkId());
  search.before.assign(places, -1);
  search.at.assign(members_.size(), -1);
  using Entry = std::pair<double, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const NodeId start = topology_.NodeOf(members_[member]);
  const size_t first = start.index() * speeds + speeds - 1;
  label[first] = 0;
  queue.emplace(0, static_cast<int32_t>(first));
  while (!queue.empty()) {
    const auto [key, at] = queue.top();
    queue.pop();
    if (key > label[at]) continue;
    const NodeId node(static_cast<int32_t>(static_cast<size_t>(at) / speeds));
    const auto speed = static_cast<int32_t>(static_cast<size_t>(at) % speeds);
    const std::span<const double> faster(label.data() + at + 1, speeds - 1 - static_cast<size_t>(speed));
    if (std::ranges::any_of(faster, [least = key](double other) { return other <= least; })) continue;
    if (const int32_t to = member_at_[node.index()]; to >= 0 && node != start) {
      const auto other = static_cast<size_t>(to);
      cost_[backwards ? other * members_.size() + member : member * members_.size() + other] = key;
      search.at[other] = at;
      continue;
    }
    for (const LinkId l : backwards ? topology_.In(node) : topology_.Out(node)) {
      const Link& link = topology_.link(l);
      const double there = key + cost[l.index()] * blocked_.BlockingFactor(l, speed) +
                           s_per_ps * static_cast<double>(link.latency_ps + link.overhead_ps);
      const size_t next = (backwards ? link.from : link.to).index() * speeds +
                          static_cast<size_t>(blocked_.NextBottleneck(l, speed));
      if (there >= label[next]) continue;
      label[next] = there;
      search.via[next] = l;
      search.before[next] = at;
      queue.emplace(there, static_cast<int32_t>(next));
    }
  }
}

void CheapestTrees::PathOf(size_t from, size_t to, std::vector<LinkId>& path) const {
  path.clear();
  const Search& search = search_[blocked_.backwards() ? to : from];
  for (int32_t at = search.at[blocked_.backwards() ? from : to]; search.before[at] >= 0;
       at = search.before[at])
    path.push_back(search.via[at]);
  if (blocked_.backwards()) std::ranges::reverse(path);
}

GrownTree CheapestTrees::Grow(Rank root, std::vector<LinkId>& links) {
  const int32_t members = static_cast<int32_t>(members_.size());
  const int32_t first = member_at_[topology_.NodeOf(root).index()];
  const std::vector<int32_t> parent = CheapestArborescence(members, first, cost_);
  std::vector<std::vector<int32_t>> children(static_cast<size_t>(members));
  for (int32_t m = 0; m < members; ++m)
    if (m != first) children[parent[m]].push_back(m);

  GrownTree tree;
  grower_.Start(root, price_, 0);
  std::vector<int32_t> order = {first};
  std::vector<LinkId> path;
  for (size_t i = 0; i < order.size(); ++i)
    for (const int32_t child : children[order[i]]) {
      PathOf(static_cast<size_t>(order[i]), static_cast<size_t>(child), path);
      order.push_back(child);
      // If the tree already has a relay GPU of the path, the path starts at that GPU.
      const auto has =
          std::ranges::find_if(path, [&](LinkId l) { return grower_.Has(topology_.link(l).from); });
      path.erase(has + 1, path.end());
      grower_.Attach(path, tree, links);
    }
  return tree;
}

}  // namespace xccl
