#include "synth/forest/allreduce.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/random.h"
#include "ir/analysis/bitwise_same.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"

namespace xccl::forest {
namespace {

using testing::MakeDgx1;
using testing::MakeFullMesh;
using testing::MakeGraph;
using testing::MakeGrid;
using testing::MakeHypercube;
using testing::MakeRing;

Collective AllOf(const Topology& topology, CollectiveKind kind = CollectiveKind::kAllreduce) {
  CollectiveSpec spec;
  spec.kind = kind;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) spec.ranks.push_back(Rank(r));
  return Collective::Create(spec).value();
}

struct Result {
  Synthesis synthesis;
  double ratio = 0;
};

// Verifies, has the same bits everywhere, is no faster than the bound.
Result Make(const Topology& topology, const Collective& collective, int64_t size, TimeModel model,
            const SynthesisLimits& limits = {}) {
  const SynthesisRequest request{
      .topology = &topology, .collective = &collective, .size_bytes = size, .model = model, .limits = limits};
  StepBudget budget("forest", request);
  StatusOr<Synthesis> made = SynthesizeAllreduceTrees(request, budget);
  EXPECT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)), OkStatus());
  EXPECT_TRUE(IsBitwiseSame(made->schedule, made->collective, topology));
  const Simulation simulation =
      Simulate(made->schedule, made->collective, topology, {.size_bytes = size, .model = model});
  const StatusOr<Bound> bound = LowerBound(topology, collective, size, model);
  EXPECT_TRUE(bound.ok());
  EXPECT_GE(simulation.time_ps, bound->bound_ps);
  const double ratio =
      static_cast<double>(simulation.time_ps) / static_cast<double>(std::max<int64_t>(bound->bound_ps, 1));
  return {*std::move(made), ratio};
}

// The partition bound holds for every plan. reduce_scatter and allgather take `composed` times as long: on an
// n × n mesh 2(n² - 1)/n² ÷ 2 to let a corner's data out and in, against (n + 1)/2n.
TEST(ForestAllreduce, MeetsThePartitionBound) {
  struct Case {
    std::string name;
    Topology topology;
    double composed;
  };
  const std::vector<Case> cases = {
      {"mesh 3x3", MakeGrid({3, 3}, false), 1.333},
      {"mesh 4x4", MakeGrid({4, 4}, false), 1.5},
      {"mesh 5x5", MakeGrid({5, 5}, false), 1.6},
      {"mesh 6x6", MakeGrid({6, 6}, false), 1.667},
      {"mesh 8x8", MakeGrid({8, 8}, false), 1.75},
      {"mesh 3x3x3", MakeGrid({3, 3, 3}, false), 1.333},
      {"torus 4x4", MakeGrid({4, 4}, true), 1},
      {"hypercube 3", MakeHypercube(3), 1},
      {"ring 5", MakeRing(5), 1},
      {"full mesh 6", MakeFullMesh(6), 1},
      {"dgx1", MakeDgx1(), 1},
      {"two triangles and a cable", MakeGraph(6, {{0, 1}, {1, 2}, {2, 0}, {3, 4}, {4, 5}, {5, 3}, {2, 3}}),
       1},
  };
  constexpr int64_t kSize = int64_t{1} << 30;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_LE(Make(c.topology, AllOf(c.topology), kSize, TimeModel::kPipelined).ratio, 1.01);
    const StatusOr<Bound> whole = LowerBound(c.topology, AllOf(c.topology), kSize, TimeModel::kPipelined);
    const StatusOr<Bound> gather =
        LowerBound(c.topology, AllOf(c.topology, CollectiveKind::kAllgather), kSize, TimeModel::kPipelined);
    EXPECT_NEAR(2 * gather->bandwidth_ps / whole->bandwidth_ps, c.composed, 0.001);
  }
}

// Small buffers take the shallowest tree alone: up and down a tree of the radius's depth.
TEST(ForestAllreduce, SmallSizesTakeShallowTrees) {
  struct Case {
    std::string name;
    Topology topology;
    int32_t radius;
  };
  for (const Case& c : std::vector<Case>{{"mesh 4x4", MakeGrid({4, 4}, false), 4},
                                         {"mesh 5x5", MakeGrid({5, 5}, false), 4},
                                         {"torus 4x4", MakeGrid({4, 4}, true), 4},
                                         {"hypercube 4", MakeHypercube(4), 4},
                                         {"ring 7", MakeRing(7), 3}}) {
    SCOPED_TRACE(c.name);
    for (CollectiveKind kind : {CollectiveKind::kAllreduce, CollectiveKind::kBarrier}) {
      const Result made = Make(c.topology, AllOf(c.topology, kind), 8, TimeModel::kPipelined);
      EXPECT_EQ(made.synthesis.schedule.num_steps(), 2 * c.radius);
      EXPECT_EQ(made.synthesis.schedule.size(), 2 * (c.topology.num_ranks() - 1));
    }
  }
}

// Connected, cables of one or several speeds, sometimes parallel.
Topology RandomGraph(Random& random, bool mixed) {
  const int32_t ranks = 2 + static_cast<int32_t>(random.Below(9));
  TopologySpec spec;
  for (int32_t r = 0; r < ranks; ++r) spec.nodes.push_back({NodeKind::kGpu, std::to_string(r), std::nullopt});
  const auto join = [&](int32_t a, int32_t b) {
    const int64_t there = (mixed ? 1 + static_cast<int64_t>(random.Below(9)) : 5) * 1'000'000'000;
    const int64_t back = mixed && random.Below(4) == 0 ? there / 2 : there;
    spec.links.push_back({NodeId(a), NodeId(b), there, 1'000'000, 0});
    spec.links.push_back({NodeId(b), NodeId(a), back, 500'000, mixed ? 100'000 : 0});
  };
  for (int32_t r = 1; r < ranks; ++r) join(r, static_cast<int32_t>(random.Below(static_cast<uint64_t>(r))));
  for (int32_t i = 0; i < ranks; ++i) {
    const int32_t a = static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks)));
    const int32_t b = static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks)));
    if (a != b) join(a, b);
  }
  return Topology::Create(std::move(spec)).value();
}

TEST(ForestAllreduce, RandomGraphs) {
  Random random(11);
  for (int32_t trial = 0; trial < 40; ++trial) {
    const bool mixed = trial % 2 == 1;
    const Topology topology = RandomGraph(random, mixed);
    SCOPED_TRACE(fmt::format("trial {}: {} ranks", trial, topology.num_ranks()));
    for (int64_t size : {int64_t{12}, int64_t{100'000}, int64_t{1} << 28}) {
      Make(topology, AllOf(topology), size, TimeModel::kBlocking);
      const double ratio = Make(topology, AllOf(topology), size, TimeModel::kPipelined).ratio;
      const bool by_bandwidth = size == int64_t{1} << 28 && !mixed;
      EXPECT_LE(ratio, by_bandwidth ? 1.03 : 1e9);
    }
  }
}

// One link at `factor` of the others' speed, 0: none, and its way back as it was.
Topology WithSlowLink(const Topology& topology, size_t link, double factor) {
  TopologySpec spec = topology.spec();
  Link& slow = spec.links[link];
  slow.bandwidth_bytes_per_s = static_cast<int64_t>(static_cast<double>(slow.bandwidth_bytes_per_s) * factor);
  if (factor == 0) spec.links.erase(spec.links.begin() + static_cast<int64_t>(link));
  return Topology::Create(std::move(spec)).value();
}

// The cable counts as the slower way, or not at all.
TEST(ForestAllreduce, SlowAndDeadLinks) {
  struct Case {
    std::string name;
    Topology topology;
    double ratio;
  };
  for (const Case& c : std::vector<Case>{{"ring 3", MakeRing(3), 1.36},
                                         {"ring 4", MakeRing(4), 1.27},
                                         {"ring 8", MakeRing(8), 1.1},
                                         {"mesh 3x3", MakeGrid({3, 3}, false), 1.15},
                                         {"torus 4x4", MakeGrid({4, 4}, true), 1.04},
                                         {"dgx1", MakeDgx1(), 1.06}}) {
    for (const double factor : {0.0, 0.25, 0.5, 0.77}) {
      for (size_t link = 0; link < c.topology.spec().links.size(); link += 5) {
        SCOPED_TRACE(fmt::format("{}, {} of link {}", c.name, factor, link));
        const Topology topology = WithSlowLink(c.topology, link, factor);
        EXPECT_LE(Make(topology, AllOf(topology), int64_t{1} << 28, TimeModel::kPipelined).ratio, c.ratio);
        Make(topology, AllOf(topology, CollectiveKind::kBarrier), 0, TimeModel::kPipelined);
      }
    }
  }
}

// 49,999,999,999 and 0.77 of it have no common divisor: the sum in units of 1 B/s is beyond 2^40.
TEST(ForestAllreduce, BandwidthsWithoutACommonDivisor) {
  TopologySpec spec = MakeGrid({8, 8}, true).spec();
  for (Link& link : spec.links) link.bandwidth_bytes_per_s = 49'999'999'999;
  spec.links[0].bandwidth_bytes_per_s = 38'499'999'999;
  const Topology torus = Topology::Create(spec).value();
  EXPECT_LE(Make(torus, AllOf(torus), int64_t{1} << 28, TimeModel::kPipelined).ratio, 1.05);
}

TEST(ForestAllreduce, TakesFewerRoundsAndTreesWhereStepsAreFew) {
  const Topology mesh = MakeGrid({3, 3}, false);
  for (int32_t steps = 4; steps < 40; ++steps) {
    SynthesisLimits limits;
    limits.steps = steps;
    const Result made = Make(mesh, AllOf(mesh), 1 << 30, TimeModel::kPipelined, limits);
    EXPECT_LE(made.synthesis.schedule.num_steps(), steps);
    EXPECT_GT(made.synthesis.schedule.num_steps(), steps / 2 - 2);
  }
}

TEST(ForestAllreduce, TakesExactlyTheChunksThatAreAskedFor) {
  const Topology mesh = MakeGrid({3, 3}, false);
  for (int32_t chunks : {1, 2, 3, 4, 7, 12, 130}) {
    SynthesisLimits limits;
    limits.chunks = chunks;
    const Result made = Make(mesh, AllOf(mesh), 1 << 24, TimeModel::kPipelined, limits);
    EXPECT_EQ(made.synthesis.collective.num_chunks(), chunks);
  }
}

TEST(ForestAllreduce, OneRankHasNothingToDo) {
  const Topology one = MakeFullMesh(1);
  EXPECT_EQ(Make(one, AllOf(one), 1024, TimeModel::kPipelined).synthesis.schedule.size(), 0);
}

TEST(ForestAllreduce, Refusals) {
  const Topology mesh = MakeGrid({3, 3}, false), switched = testing::MakeSwitch(4);
  const Topology one_way = testing::MakeDigraph(3, {{0, 1}, {1, 2}, {2, 0}});
  CollectiveSpec some;
  some.kind = CollectiveKind::kAllreduce;
  some.ranks = {Rank(0), Rank(1)};
  TopologySpec thin = MakeRing(3).spec();
  for (Link& link : thin.links) link.bandwidth_bytes_per_s = 10'000'000'000'000;
  for (Link& link : thin.links)
    if (link.from == NodeId(2) || link.to == NodeId(2)) link.bandwidth_bytes_per_s = 1;
  const Topology unlike = Topology::Create(thin).value();
  SynthesisLimits three;
  three.steps = 3;
  struct Case {
    const Topology& topology;
    Collective collective;
    SynthesisLimits limits;
    std::string text;
  };
  for (const Case& c : std::vector<Case>{
           {mesh,
            Collective::Create(some).value(),
            {},
            fmt::format(
                "forest: {}: 2 members among 9 nodes; spanning trees need GPUs alone, all of them members",
                mesh.name())},
           {switched,
            AllOf(switched),
            {},
            fmt::format(
                "forest: {}: 4 members among 5 nodes; spanning trees need GPUs alone, all of them members",
                switched.name())},
           {one_way,
            AllOf(one_way),
            {},
            fmt::format("forest: {}: some ranks are joined one way only; spanning trees need links both ways",
                        one_way.name())},
           {unlike,
            AllOf(unlike),
            {},
            fmt::format("forest: {}: some ranks are joined by less than 18 B/s, 2^-39 of all bandwidth; "
                        "spanning trees need more",
                        unlike.name())},
           {mesh, AllOf(mesh), three,
            fmt::format("forest: allreduce on {}: 4 steps at least were used; at most 3 are allowed; "
                        "hint: --steps=4",
                        mesh.name())},
       }) {
    const SynthesisRequest request{
        .topology = &c.topology, .collective = &c.collective, .size_bytes = 1 << 30, .limits = c.limits};
    StepBudget budget("forest", request);
    const StatusOr<Synthesis> made = SynthesizeAllreduceTrees(request, budget);
    EXPECT_EQ(made.status().message(), c.text);
  }
}

}  // namespace
}  // namespace xccl::forest
