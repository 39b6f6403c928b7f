#include "synth/common/cheapest_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "synth/common/blocked_links.h"
#include "synth/common/test_machines.h"

namespace xccl {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

// The cost of these arcs, infinite where they are no tree.
double CostOf(int32_t root, const std::vector<int32_t>& parent, const std::vector<double>& cost) {
  const int32_t nodes = static_cast<int32_t>(parent.size());
  double sum = 0;
  for (int32_t n = 0; n < nodes; ++n) {
    if (n == root) continue;
    sum += cost[static_cast<size_t>(parent[n] * nodes + n)];
    int32_t at = n, steps = 0;
    for (; at != root && steps <= nodes; ++steps) at = parent[at];
    if (at != root) return kNone;
  }
  return sum;
}

// Over all choices of parents.
double LeastCost(int32_t nodes, int32_t root, const std::vector<double>& cost) {
  double least = kNone;
  std::vector<int32_t> parent(static_cast<size_t>(nodes), 0);
  while (true) {
    least = std::min(least, CostOf(root, parent, cost));
    size_t n = 0;
    while (n < parent.size() && ++parent[n] == nodes) parent[n++] = 0;
    if (n == parent.size()) return least;
  }
}

TEST(CheapestArborescence, IsTheCheapestOfAll) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const int32_t nodes = 2 + static_cast<int32_t>(random.Below(4)),
                  root = static_cast<int32_t>(seed) % nodes;
    std::vector<double> cost;
    for (int32_t i = 0; i < nodes * nodes; ++i)
      cost.push_back(i / nodes != i % nodes && random.Below(4) > 0 ? static_cast<double>(random.Below(9))
                                                                   : kNone);
    const double least = LeastCost(nodes, root, cost);
    if (least == kNone) continue;  // not all nodes are reached
    EXPECT_EQ(CostOf(root, CheapestArborescence(nodes, root, cost), cost), least);
  }
}

// Many circles within circles: a path back to the root is far dearer than every step away from it.
TEST(CheapestArborescence, LongChainOfCircles) {
  constexpr int32_t kNodes = 200;
  std::vector<double> cost(kNodes * kNodes, kNone);
  for (int32_t n = 0; n + 1 < kNodes; ++n) {
    cost[static_cast<size_t>(n * kNodes + n + 1)] = kNodes - n;
    cost[static_cast<size_t>((n + 1) * kNodes + n)] = 0;
  }
  const std::vector<int32_t> parent = CheapestArborescence(kNodes, 0, cost);
  for (int32_t n = 1; n < kNodes; ++n) EXPECT_EQ(parent[n], n - 1);
}

TEST(CheapestTrees, SpanTheMembersAndCostNoMoreThanGrownOnes) {
  for (const testing::Machine& machine : testing::Machines())
    for (const std::vector<Rank>& members : testing::MemberLists(machine.topology.num_ranks())) {
      SCOPED_TRACE(machine.name);
      Random random(members.size());
      std::vector<double> prices;
      for (int32_t l = 0; l < machine.topology.num_links(); ++l)
        prices.push_back(1 + static_cast<double>(random.Below(8)));
      CheapestTrees trees(machine.topology, members, BlockedLinks(machine.topology, Direction::kForwards, 0));
      trees.SetPrices(prices, 0);
      std::vector<LinkId> links;
      const GrownTree tree = trees.Grow(members[0], links);
      std::vector<bool> has(static_cast<size_t>(machine.topology.num_ranks()), false);
      has[members[0].index()] = true;
      double cost = 0;
      for (const PackedArc& arc : tree.arcs) {
        EXPECT_TRUE(has[arc.from.index()] && !has[arc.to.index()]);
        has[arc.to.index()] = true;
        NodeId at = machine.topology.NodeOf(arc.from);
        for (int32_t i = 0; i < arc.num_links; ++i) {
          const LinkId l = links[static_cast<size_t>(arc.first_link + i)];
          EXPECT_EQ(machine.topology.link(l).from, at);
          at = machine.topology.link(l).to;
          cost += prices[l.index()];
        }
        EXPECT_EQ(at, machine.topology.NodeOf(arc.to));
      }
      for (const Rank member : members) EXPECT_TRUE(has[member.index()]);
      EXPECT_DOUBLE_EQ(tree.cost, cost);
      if (static_cast<int32_t>(members.size()) < machine.topology.num_ranks()) continue;
      TreeGrower grower(machine.topology, members, Branching::kNone);
      EXPECT_LE(tree.cost, grower.Grow(members[0], prices, 0, links).cost * (1 + 1e-9));
    }
}

// Two GPUs, and switches with random links of 10, 20 and 40 GB/s among them all.
Topology RandomSwitches(Random& random) {
  constexpr int32_t kNodes = 6;
  TopologySpec spec;
  spec.name = "switches";
  for (int32_t n = 0; n < kNodes; ++n) {
    Node& node = spec.nodes.emplace_back();
    node.id = std::to_string(n);
    if (n >= 2) node.kind = NodeKind::kSwitch;
  }
  for (int32_t from = 0; from < kNodes; ++from)
    for (int32_t to = 0; to < kNodes; ++to)
      if (from != to && random.Below(2) == 0)
        spec.links.push_back({.from = NodeId(from),
                              .to = NodeId(to),
                              .bandwidth_bytes_per_s = 10'000'000'000 << random.Below(3),
                              .latency_ps = 1});
  return Topology::Create(std::move(spec)).value();
}

// Of all paths from the end of `path` to the GPU through switches.
double LeastCost(const Topology& topology, const BlockedLinks& held, const std::vector<double>& prices,
                 NodeId at, NodeId to, std::vector<LinkId>& path) {
  if (at == to) {
    std::vector<double> times;
    held.BlockingFactors(path, times);
    double cost = 0;
    for (size_t i = 0; i < path.size(); ++i) cost += prices[path[i].index()] * times[i];
    return cost;
  }
  double least = kNone;
  for (const LinkId l : topology.Out(at)) {
    const NodeId next = topology.link(l).to;
    const auto is_there = [&](LinkId before) { return topology.link(before).from == next; };
    if ((topology.IsGpu(next) && next != to) || std::ranges::any_of(path, is_there)) continue;
    path.push_back(l);
    least = std::min(least, LeastCost(topology, held, prices, next, to, path));
    path.pop_back();
  }
  return least;
}

// Does the path pass no node twice?
bool IsSimple(const Topology& topology, const std::vector<LinkId>& path) {
  std::vector<bool> passed(static_cast<size_t>(topology.num_nodes()), false);
  passed[topology.link(path.front()).from.index()] = true;
  for (const LinkId l : path) {
    auto at = passed[topology.link(l).to.index()];
    if (at) return false;
    at = true;
  }
  return true;
}

// Prices of 0 make detours to a slower neighbour and back as cheap as the direct way.
TEST(CheapestTrees, FindTheCheapestPathOverHeldLinks) {
  int32_t seen = 0;
  for (uint64_t seed = 0; seed < 800; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = RandomSwitches(random);
    std::vector<double> prices;
    for (int32_t l = 0; l < topology.num_links(); ++l)
      prices.push_back(seed % 4 < 2 ? static_cast<double>(random.Below(3))
                                    : 1 + static_cast<double>(random.Below(8)));
    const BlockedLinks held(topology, seed % 2 == 0 ? Direction::kForwards : Direction::kBackwards, 0.5);
    std::vector<LinkId> path, links;
    const double least =
        LeastCost(topology, held, prices, topology.NodeOf(Rank(0)), topology.NodeOf(Rank(1)), path);
    if (least == kNone) continue;
    ++seen;
    const std::vector<Rank> members = {Rank(0), Rank(1)};
    CheapestTrees trees(topology, members, held);
    trees.SetPrices(prices, 0);
    trees.Grow(Rank(0), links);
    EXPECT_TRUE(IsSimple(topology, links));
    std::vector<double> times;
    held.BlockingFactors(links, times);
    double cost = 0;
    for (size_t i = 0; i < links.size(); ++i) cost += prices[links[i].index()] * times[i];
    EXPECT_DOUBLE_EQ(cost, least);
  }
  EXPECT_GT(seen, 400);
}

}  // namespace
}  // namespace xccl
