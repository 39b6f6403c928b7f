#include "base/graph/max_flow.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace xccl {
namespace {

struct TestArc {
  int32_t from, to;
  int64_t capacity;
};

FlowNetwork Make(int32_t nodes, const std::vector<TestArc>& arcs) {
  FlowNetwork network(nodes);
  for (const TestArc& arc : arcs) network.AddArc(arc.from, arc.to, arc.capacity);
  return network;
}

TEST(MaxFlow, KnownNetworks) {
  struct Case {
    const char* name;
    int32_t nodes;
    std::vector<TestArc> arcs;
    int64_t expected;  // from 0 to nodes - 1
  };
  const std::vector<Case> cases = {
      {"one arc", 2, {{0, 1, 7}}, 7},
      {"parallel arcs add", 2, {{0, 1, 7}, {0, 1, 5}}, 12},
      {"wrong direction", 2, {{1, 0, 7}}, 0},
      {"no arcs", 3, {}, 0},
      {"needs a reverse arc", 4, {{0, 1, 1}, {0, 2, 1}, {1, 2, 1}, {1, 3, 1}, {2, 3, 1}}, 2},
      {"the book's",
       6,
       {{0, 1, 16},
        {0, 2, 13},
        {2, 1, 4},
        {1, 3, 12},
        {3, 2, 9},
        {2, 4, 14},
        {4, 3, 7},
        {3, 5, 20},
        {4, 5, 4}},
       23},
      {"loops do nothing", 2, {{0, 0, 5}, {0, 1, 3}, {1, 1, 9}}, 3},
      {"infinite arcs in series", 3, {{0, 1, FlowNetwork::kInfinite}, {1, 2, 4}}, 4},
      {"infinite arcs in parallel stop at infinite",
       2,
       {{0, 1, FlowNetwork::kInfinite}, {0, 1, FlowNetwork::kInfinite}},
       FlowNetwork::kInfinite},
  };
  for (const Case& c : cases) EXPECT_EQ(Make(c.nodes, c.arcs).MaxFlow(0, c.nodes - 1), c.expected) << c.name;
}

TEST(MaxFlow, StopsAtEnoughAndRestartsFromScratch) {
  FlowNetwork network = Make(3, {{0, 1, 10}, {1, 2, 8}, {0, 2, 5}});
  EXPECT_EQ(network.MaxFlow(0, 2, 6), 6);
  EXPECT_EQ(network.MaxFlow(0, 2), 13);
  EXPECT_EQ(network.Flow(1), 8);
  network.SetCapacity(1, 2);
  EXPECT_EQ(network.MaxFlow(0, 2), 7);
  EXPECT_EQ(network.MaxFlow(2, 0), 0);
}

TEST(MaxFlow, DeepGraphsCostNoStack) {
  constexpr int32_t kNodes = 400'000;
  FlowNetwork network(kNodes);
  for (int32_t n = 0; n + 1 < kNodes; ++n) network.AddArc(n, n + 1, 3);
  EXPECT_EQ(network.MaxFlow(0, kNodes - 1), 3);
}

// Ford and Fulkerson on an adjacency matrix: slow and obvious.
int64_t NaiveMaxFlow(int32_t nodes, const std::vector<TestArc>& arcs, int32_t source, int32_t sink) {
  std::vector<std::vector<int64_t>> residual(nodes, std::vector<int64_t>(nodes, 0));
  for (const TestArc& arc : arcs) residual[arc.from][arc.to] += arc.capacity;
  for (int64_t total = 0;;) {
    std::vector<int32_t> parent(nodes, -1), queue = {source};
    parent[source] = source;
    for (size_t i = 0; i < queue.size(); ++i)
      for (int32_t to = 0; to < nodes; ++to)
        if (parent[to] < 0 && residual[queue[i]][to] > 0) {
          parent[to] = queue[i];
          queue.push_back(to);
        }
    if (parent[sink] < 0) return total;
    int64_t width = FlowNetwork::kInfinite;
    for (int32_t n = sink; n != source; n = parent[n]) width = std::min(width, residual[parent[n]][n]);
    for (int32_t n = sink; n != source; n = parent[n]) {
      residual[parent[n]][n] -= width;
      residual[n][parent[n]] += width;
    }
    total += width;
  }
}

TEST(MaxFlow, AgreesWithFordFulkersonAndItsCutProvesIt) {
  Random random(20);
  for (int trial = 0; trial < 400; ++trial) {
    const auto nodes = static_cast<int32_t>(2 + random.Below(12));
    std::vector<TestArc> arcs(random.Below(static_cast<uint64_t>(4 * nodes)));
    for (TestArc& arc : arcs)
      arc = {static_cast<int32_t>(random.Below(nodes)), static_cast<int32_t>(random.Below(nodes)),
             static_cast<int64_t>(random.Below(trial % 2 == 0 ? 3 : 1'000'000'000'000))};
    FlowNetwork network = Make(nodes, arcs);
    const int64_t flow = network.MaxFlow(0, nodes - 1);
    ASSERT_EQ(flow, NaiveMaxFlow(nodes, arcs, 0, nodes - 1)) << "trial " << trial;
    const std::vector<bool> side = network.SourceSide();
    ASSERT_TRUE(side[0] && !side[nodes - 1]);
    int64_t cut = 0;
    std::vector<int64_t> balance(nodes, 0);
    for (size_t a = 0; a < arcs.size(); ++a) {
      if (side[arcs[a].from] && !side[arcs[a].to]) cut += arcs[a].capacity;
      const int64_t sent = network.Flow(static_cast<int32_t>(a));
      ASSERT_TRUE(sent >= 0 && sent <= arcs[a].capacity);
      balance[arcs[a].from] -= sent;
      balance[arcs[a].to] += sent;
    }
    ASSERT_EQ(cut, flow) << "trial " << trial;
    for (int32_t n = 1; n + 1 < nodes; ++n) ASSERT_EQ(balance[n], 0) << "trial " << trial << " node " << n;
    ASSERT_EQ(balance[nodes - 1], flow);
  }
}

}  // namespace
}  // namespace xccl
