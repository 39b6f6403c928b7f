// The cut searches beside each other, beside all subsets, and on graphs of many levels.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/graph/contract_cuts.h"
#include "base/graph/cut_search.h"
#include "base/graph/min_cut.h"
#include "base/graph/ratio_cut.h"
#include "base/random.h"

namespace xccl {
namespace {

using Arcs = std::vector<CapacityArc>;

int64_t CapacityInto(const Arcs& arcs, uint32_t inside) {
  int64_t capacity = 0;
  for (const CapacityArc& arc : arcs)
    if ((inside >> arc.to & 1) != 0 && (inside >> arc.from & 1) == 0) capacity += arc.capacity;
  return capacity;
}

int64_t SupplyOutside(const std::vector<int64_t>& supply, uint32_t inside) {
  int64_t outside = 0;
  for (size_t n = 0; n < supply.size(); ++n)
    if ((inside >> n & 1) == 0) outside += supply[n];
  return outside;
}

// A tree, a ring with chords or any other graph; some pairs of nodes are joined in one direction only.
RatioCutProblem RandomProblem(Random& random) {
  const int32_t nodes = 2 + static_cast<int32_t>(random.Below(7));
  const uint64_t shape = random.Below(3), most = 1 + random.Below(6);
  RatioCutProblem problem;
  const auto join = [&](int32_t a, int32_t b) {
    if (a == b) return;
    problem.arcs.push_back({a, b, static_cast<int64_t>(1 + random.Below(most))});
    if (random.Below(4) > 0) problem.arcs.push_back({b, a, static_cast<int64_t>(1 + random.Below(most))});
  };
  const auto any = [&] { return static_cast<int32_t>(random.Below(static_cast<uint64_t>(nodes))); };
  for (int32_t n = 1; n < nodes && shape == 0; ++n)
    join(n, static_cast<int32_t>(random.Below(static_cast<uint64_t>(n))));
  for (int32_t n = 0; n < nodes && shape == 1; ++n) join(n, (n + 1) % nodes);
  for (uint64_t more = random.Below(shape == 2 ? 20 : 3); more > 0; --more) join(any(), any());
  for (int32_t n = 0; n < nodes; ++n) {
    problem.supply.push_back(static_cast<int64_t>(random.Below(4)));
    if (random.Below(3) > 0) problem.sinks.push_back(n);
  }
  if (problem.sinks.empty()) problem.sinks.push_back(any());
  return problem;
}

TEST(RatioCut, IsTheWorstOfAllSubsets) {
  Random random(7);
  for (int32_t round = 0; round < 5000; ++round) {
    const RatioCutProblem problem = RandomProblem(random);
    RatioCut worst;
    bool cut_off = false;
    for (uint32_t inside = 1; inside < 1u << problem.supply.size(); ++inside) {
      if (std::ranges::none_of(problem.sinks, [&](int32_t s) { return (inside >> s & 1) != 0; })) continue;
      const RatioCut cut{SupplyOutside(problem.supply, inside), CapacityInto(problem.arcs, inside)};
      if (cut.supply == 0) continue;
      cut_off |= cut.capacity == 0;
      if (worst.IsLessThan(cut)) worst = cut;
    }
    const std::optional<RatioCut> found = FindRatioCut(problem);
    ASSERT_EQ(found.has_value(), !cut_off) << round;
    if (!found) continue;
    EXPECT_FALSE(found->IsLessThan(worst) || worst.IsLessThan(*found))
        << round << ": " << found->supply << " / " << found->capacity;
  }
}

TEST(RatioCut, LargeNumbersAreExact) {
  // Products of supplies and capacities need 128 bits.
  constexpr int64_t kLarge = (int64_t{1} << 58) - 1;
  RatioCutProblem problem{.arcs = {{0, 1, 2}, {1, 0, 2}, {1, 2, 3}, {2, 1, 3}, {2, 0, 1}, {0, 2, 1}},
                          .supply = {kLarge, 1, 1},
                          .sinks = {0, 1, 2}};
  const std::optional<RatioCut> cut = FindRatioCut(problem);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->supply, kLarge);
  EXPECT_EQ(cut->capacity, 3);
  problem.supply[1] = int64_t{1} << 62;
  EXPECT_FALSE(FindRatioCut(problem));
}

TEST(RatioCut, AlikeSinksAreTriedOnce) {
  RatioCutProblem problem;
  constexpr int32_t kNodes = 64;
  for (int32_t n = 0; n < kNodes; ++n)
    for (int32_t step : {1, 5}) {
      problem.arcs.push_back({n, (n + step) % kNodes, 3});
      problem.arcs.push_back({(n + step) % kNodes, n, 3});
    }
  problem.supply.assign(kNodes, 2);
  for (int32_t n = 0; n < kNodes; ++n) problem.sinks.push_back(n);
  const std::optional<RatioCut> alone = FindRatioCut(problem);
  problem.alike.assign(kNodes, 0);
  const std::optional<RatioCut> alike = FindRatioCut(problem);
  ASSERT_TRUE(alone && alike);
  EXPECT_FALSE(alone->IsLessThan(*alike) || alike->IsLessThan(*alone));
}

TEST(ContractCuts, TreesAndRingsBecomeOneNode) {
  Random random(3);
  constexpr int32_t kNodes = 1000;
  for (bool ring : {false, true}) {
    RatioCutProblem problem;
    for (int32_t n = ring ? 0 : 1; n < kNodes; ++n) {
      const int32_t other =
          ring ? (n + 1) % kNodes : static_cast<int32_t>(random.Below(static_cast<uint64_t>(n)));
      const auto capacity = static_cast<int64_t>(1 + random.Below(50));
      problem.arcs.push_back({n, other, capacity});
      problem.arcs.push_back({other, n, capacity});
    }
    for (int32_t n = 0; n < kNodes; ++n) problem.sinks.push_back(n);
    problem.supply.assign(kNodes, 1);
    const std::optional<ContractedCuts> contracted = ContractCuts(problem);
    ASSERT_TRUE(contracted);
    EXPECT_EQ(contracted->left.supply.size(), 1u) << ring;
  }
}

// With and without `alike`, which leaves the ring as it is: the flow to the first sink has all levels.
TEST(RatioCut, ManyLevelsCostNoStack) {
  constexpr int32_t kNodes = 400'000;
  RatioCutProblem problem;
  for (int32_t n = 0; n < kNodes; ++n) {
    problem.arcs.push_back({n, (n + 1) % kNodes, 1});
    problem.arcs.push_back({(n + 1) % kNodes, n, 1});
    problem.sinks.push_back(n);
  }
  problem.supply.assign(kNodes, 0);
  problem.supply[kNodes / 2] = 5;
  for (bool alike : {false, true}) {
    if (alike)
      for (int32_t n = 0; n < kNodes; ++n) problem.alike.push_back(n);
    const std::optional<RatioCut> cut = FindRatioCut(problem);
    ASSERT_TRUE(cut);
    EXPECT_EQ(cut->supply, 5);
    EXPECT_EQ(cut->capacity, 2);
  }
}

// A search that keeps the flows and sources of earlier sinks finds the same cuts as a search from the start.
TEST(CutSearch, FindsTheSmallestSetsWhateverCameBefore) {
  Random random(11);
  for (int32_t round = 0; round < 3000; ++round) {
    const RatioCutProblem problem = RandomProblem(random);
    const size_t nodes = problem.supply.size();
    int64_t total = 0;
    for (int64_t supply : problem.supply) total += supply;
    CutSearch<int64_t> search(static_cast<int32_t>(nodes), problem.arcs);
    search.Start(problem.supply);
    uint32_t sources = 0;
    for (int32_t sink : search.NearOnesTogether(problem.sinks)) {
      const int64_t wanted = total - problem.supply[sink];
      int64_t least = wanted;
      uint32_t smallest = 0;
      for (uint32_t inside = 1; inside < 1u << nodes; ++inside) {
        if ((inside >> sink & 1) == 0 || (inside & sources) != 0) continue;
        const int64_t fits =
            CapacityInto(problem.arcs, inside) - SupplyOutside(problem.supply, inside) + wanted;
        if (fits > least || (fits == least && least == wanted)) continue;
        smallest = fits < least ? inside : smallest & inside;
        least = fits;
      }
      ASSERT_EQ(search.Bring(sink, wanted), least) << round;
      if (least < wanted) {
        uint32_t found = 0;
        for (int32_t node : search.Inside()) found |= 1u << node;
        EXPECT_EQ(found, smallest) << round;
        EXPECT_EQ(search.CapacityIntoInside(), CapacityInto(problem.arcs, smallest)) << round;
      }
      search.MakeSource(sink);
      sources |= 1u << sink;
    }
  }
}

TEST(MinCut, KnownNetworks) {
  struct Case {
    const char* name;
    int32_t nodes;
    Arcs arcs;
    int64_t capacity;  // from 0 to nodes - 1
    std::vector<bool> side;
  };
  const std::vector<Case> cases = {
      {"one arc", 2, {{0, 1, 7}}, 7, {true, false}},
      {"parallel arcs add", 2, {{0, 1, 7}, {0, 1, 5}}, 12, {true, false}},
      {"wrong direction", 2, {{1, 0, 7}}, 0, {true, false}},
      {"no arcs", 3, {}, 0, {true, false, false}},
      {"needs a reverse arc",
       4,
       {{0, 1, 1}, {0, 2, 1}, {1, 2, 1}, {1, 3, 1}, {2, 3, 1}},
       2,
       {true, false, false, false}},
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
       23,
       {true, true, true, false, true, false}},
      {"loops do nothing", 2, {{0, 0, 5}, {0, 1, 3}, {1, 1, 9}}, 3, {true, false}},
      {"unlimited arcs in series", 3, {{0, 1, kUnlimitedCapacity}, {1, 2, 4}}, 4, {true, true, false}},
  };
  for (const Case& c : cases) {
    const MinimumCut cut = FindMinCut(c.nodes, c.arcs, 0, c.nodes - 1);
    EXPECT_EQ(cut.capacity, c.capacity) << c.name;
    EXPECT_EQ(cut.source_side, c.side) << c.name;
  }
  EXPECT_EQ(FindMinCut(2, {{0, 1, kUnlimitedCapacity}, {0, 1, kUnlimitedCapacity}}, 0, 1).capacity,
            kUnlimitedCapacity);
}

TEST(MinCut, IsTheLeastOfAllSubsets) {
  Random random(5);
  for (int32_t round = 0; round < 3000; ++round) {
    const RatioCutProblem problem = RandomProblem(random);
    const size_t nodes = problem.supply.size();
    int64_t least = kUnlimitedCapacity;
    for (uint32_t sink_side = 0; sink_side < 1u << nodes; ++sink_side)
      if ((sink_side & 1) == 0 && (sink_side >> 1 & 1) != 0)
        least = std::min(least, CapacityInto(problem.arcs, sink_side));
    EXPECT_EQ(FindMinCut(static_cast<int32_t>(nodes), problem.arcs, 0, 1).capacity, least) << round;
  }
}

TEST(MinCut, ManyLevelsCostNoStack) {
  constexpr int32_t kNodes = 400'000;
  Arcs arcs;
  for (int32_t n = 0; n + 1 < kNodes; ++n) arcs.push_back({n, n + 1, 3});
  EXPECT_EQ(FindMinCut(kNodes, arcs, 0, kNodes - 1).capacity, 3);
}

}  // namespace
}  // namespace xccl
