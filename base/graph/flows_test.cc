// Cheapest flows beside the search of all cycles, and flows over time beside networks drawn once for each
// moment.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/graph/flow_over_time.h"
#include "base/graph/min_cost_flow.h"
#include "base/random.h"

namespace xccl {
namespace {

struct Network {
  int32_t nodes = 0;
  std::vector<CostArc> arcs;
  std::vector<int32_t> sources, sinks;
};

Network RandomNetwork(Random& random) {
  Network network;
  network.nodes = 2 + static_cast<int32_t>(random.Below(6));
  const auto any = [&] { return static_cast<int32_t>(random.Below(static_cast<uint64_t>(network.nodes))); };
  const uint64_t capacities = 1 + random.Below(4), costs = 1 + random.Below(5);
  const bool starts_cost = random.Below(3) == 0;
  for (uint64_t more = 1 + random.Below(20); more > 0; --more) {
    const int32_t from = any(), to = any();
    if (from == to) continue;
    network.arcs.push_back({from, to, static_cast<int64_t>(random.Below(capacities + 1)),
                            static_cast<int64_t>(random.Below(costs)),
                            starts_cost ? static_cast<int64_t>(random.Below(3)) : 0});
  }
  for (int32_t n = 1; n < network.nodes; ++n) {
    const uint64_t drawn = random.Below(5);
    if (drawn == 0) network.sources.push_back(n);
    if (drawn == 1) network.sinks.push_back(n);
  }
  (network.sources.empty() ? network.sources : network.sinks).push_back(0);
  if (network.sinks.empty()) {
    network.sinks.push_back(network.sources.back());
    network.sources.pop_back();
    if (network.sources.empty()) network.sources.push_back((network.sinks[0] + 1) % network.nodes);
  }
  return network;
}

// One unit after another along a cheapest path, which Bellman and Ford's method finds in the plain network
// with a node before all sources and one behind all sinks. Returns the costs of the units.
std::vector<int64_t> UnitCosts(const Network& network) {
  const int32_t source = network.nodes, sink = network.nodes + 1;
  std::vector<CostArc> arcs;
  constexpr int64_t kWide = 1000;
  for (CostArc arc : network.arcs) {
    if (network.sources == std::vector{arc.from}) arc.cost += arc.start_cost;
    arcs.push_back(arc);
  }
  for (const int32_t s : network.sources) arcs.push_back({source, s, kWide});
  for (const int32_t s : network.sinks) arcs.push_back({s, sink, kWide});
  std::vector<int64_t> flow(arcs.size(), 0), costs;
  while (true) {
    constexpr int64_t kFar = 1'000'000;
    std::vector<int64_t> distance(static_cast<size_t>(network.nodes) + 2, kFar);
    std::vector<int32_t> by(distance.size(), -1);
    distance[static_cast<size_t>(source)] = 0;
    for (size_t round = 0; round < distance.size(); ++round) {
      for (int32_t code = 0; code < 2 * std::ssize(arcs); ++code) {
        const CostArc& arc = arcs[static_cast<size_t>(code / 2)];
        const bool back = code % 2 == 1;
        const auto from = static_cast<size_t>(back ? arc.to : arc.from);
        const auto to = static_cast<size_t>(back ? arc.from : arc.to);
        const int64_t used = flow[static_cast<size_t>(code / 2)];
        if ((back ? used : arc.capacity - used) == 0 || distance[from] == kFar) continue;
        if (distance[from] + (back ? -arc.cost : arc.cost) >= distance[to]) continue;
        distance[to] = distance[from] + (back ? -arc.cost : arc.cost);
        by[to] = code;
      }
    }
    if (distance[static_cast<size_t>(sink)] == kFar) return costs;
    costs.push_back(distance[static_cast<size_t>(sink)]);
    for (int32_t node = sink; node != source;) {
      const int32_t code = by[static_cast<size_t>(node)];
      const CostArc& arc = arcs[static_cast<size_t>(code / 2)];
      flow[static_cast<size_t>(code / 2)] += code % 2 == 0 ? 1 : -1;
      node = code % 2 == 0 ? arc.from : arc.to;
    }
  }
}

TEST(MinCostFlow, TakesUnitsInOrderOfTheirCost) {
  Random random(11);
  int64_t units = 0, steps = 0;
  for (int32_t round = 0; round < 20'000; ++round) {
    const Network network = RandomNetwork(random);
    MinCostFlow flow(network.nodes, network.arcs);
    std::vector<int64_t> costs;
    for (int32_t again = 0; again < 2; ++again) {  // the second time from a used network
      costs.clear();
      flow.Start(network.sources, network.sinks);
      while (const std::optional<FlowStep> step = flow.Next()) {
        ASSERT_GT(step->amount, 0);
        costs.insert(costs.end(), static_cast<size_t>(step->amount), step->cost);
        ++steps;
      }
      ASSERT_EQ(costs, UnitCosts(network)) << round;
    }
    units += std::ssize(costs);
  }
  EXPECT_GT(units, 20'000);
  EXPECT_GT(steps, 20'000);
}

TEST(MinCostFlow, StopsBelowALimit) {
  MinCostFlow flow(3, {{0, 1, 2, 1, 0}, {1, 2, 2, 1, 0}, {0, 2, 5, 7, 0}});
  const std::vector<int32_t> sources = {0}, sinks = {2};
  flow.Start(sources, sinks);
  EXPECT_FALSE(flow.Next(2));
  std::optional<FlowStep> step = flow.Next(3);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->cost, 2);
  EXPECT_EQ(step->amount, 2);
  EXPECT_FALSE(flow.Next(7));
  step = flow.Next(8);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->cost, 7);
  EXPECT_EQ(step->amount, 5);
  EXPECT_FALSE(flow.Next());
  EXPECT_EQ(flow.CostsFrom(sources), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(flow.CostsTo(sinks), (std::vector<int64_t>{2, 1, 0}));
  EXPECT_EQ(flow.CostsTo(sources), (std::vector<int64_t>{0, -1, -1}));
  const std::vector<int32_t> two = {1, 2};
  EXPECT_EQ(flow.CostsTo(two), (std::vector<int64_t>{1, 0, 0}));
}

// The most that gets to the sinks by `time` where all moves begin at whole units of time: a maximum flow in a
// network with one copy of the nodes for each moment. It is what continuous time allows, since all data is
// whole.
int64_t MostByCopies(const Network& network, int64_t time) {
  const auto nodes = static_cast<int64_t>(network.nodes);
  const auto at = [&](int32_t node, int64_t moment) { return static_cast<int32_t>(moment * nodes + node); };
  std::vector<CostArc> arcs;
  std::vector<int32_t> sources, sinks;
  for (int64_t moment = 0; moment <= time; ++moment) {
    for (const CostArc& arc : network.arcs) {
      const bool starts = network.sources == std::vector{arc.from};
      // All flow that enters the arc in the unit of time after `moment` has come out at `out`.
      const int64_t out = moment + 1 + arc.cost + (starts ? arc.start_cost : 0);
      if (out <= time) arcs.push_back({at(arc.from, moment + 1), at(arc.to, out), arc.capacity});
    }
    for (int32_t n = 0; n < network.nodes && moment < time; ++n)
      arcs.push_back({at(n, moment), at(n, moment + 1), 1'000'000});
  }
  for (int64_t moment = 0; moment <= time; ++moment) {
    for (const int32_t s : network.sources) sources.push_back(at(s, moment));
    for (const int32_t s : network.sinks) sinks.push_back(at(s, moment));
  }
  MinCostFlow flow(static_cast<int32_t>(nodes * (time + 1)), arcs);
  flow.Start(sources, sinks);
  int64_t amount = 0;
  while (const std::optional<FlowStep> step = flow.Next()) amount += step->amount;
  return amount;
}

TEST(FlowOverTime, IsThatOfANetworkWithACopyOfEachMoment) {
  Random random(5);
  int32_t reached = 0;
  for (int32_t round = 0; round < 3000; ++round) {
    const Network network = RandomNetwork(random);
    MinCostFlow flow(network.nodes, network.arcs);
    const auto time = static_cast<int64_t>(random.Below(12));
    const int64_t most = MostByCopies(network, time);
    const TimeQuery nothing{.sources = network.sources, .sinks = network.sinks};
    EXPECT_EQ(SurplusBy(flow, nothing, time), most) << round;
    if (most == 0) continue;
    ++reached;
    TimeQuery query = nothing;
    query.amount = most;
    const std::optional<int64_t> least = LeastTime(flow, query);
    ASSERT_TRUE(least);
    EXPECT_LE(*least, time);
    EXPECT_GE(*least, time - 1);  // the last moment may bring nothing: time - 1 then brings as much
    EXPECT_GE(MostByCopies(network, *least + 1), most);
    EXPECT_FALSE(LeastTime(flow, query, *least));
    EXPECT_EQ(LeastTime(flow, query, *least - 1), least);
    query.amount = most + 1;
    const std::optional<int64_t> longer = LeastTime(flow, query);
    if (longer) {
      EXPECT_GE(*longer, time);
    }
  }
  EXPECT_GT(reached, 1000);
}

// 0 -> 1 is wide and slow to come, 0 -> 2 -> 1 narrow and quick: 10 units need (10 + 3 × 5 + 1 × 2) ÷ 4.
TEST(FlowOverTime, ByHand) {
  MinCostFlow flow(3, {{0, 1, 3, 5, 0}, {0, 2, 1, 1, 0}, {2, 1, 1, 1, 0}});
  const std::vector<int32_t> sources = {0}, sinks = {1};
  TimeQuery query{.sources = sources, .sinks = sinks, .amount = 10};
  EXPECT_EQ(LeastTime(flow, query), 6);
  query.times = 1000;
  EXPECT_EQ(LeastTime(flow, query), (10'000 + 3 * 5 + 2) / 4);
  query.amount = 0;
  EXPECT_EQ(LeastTime(flow, query), 2);  // the distance
  const std::vector<int32_t> behind = {2};
  EXPECT_FALSE(LeastTime(flow, {.sources = sinks, .sinks = behind, .amount = 1}));
}

}  // namespace
}  // namespace xccl
