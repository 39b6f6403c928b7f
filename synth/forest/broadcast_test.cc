#include "synth/forest/broadcast.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/random.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"

namespace xccl::forest {
namespace {

using testing::MakeDigraph;
using testing::MakeFullMesh;
using testing::MakeGrid;
using testing::MakeHypercube;
using testing::MakeRing;

Collective Of(const Topology& topology, CollectiveKind kind, int32_t root) {
  CollectiveSpec spec;
  spec.kind = kind;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) spec.ranks.push_back(Rank(r));
  spec.root = Rank(root);
  return Collective::Create(spec).value();
}

// Verifies and is no faster than the bound. Returns time ÷ bound.
double Ratio(const Topology& topology, const Collective& collective, int64_t size,
             const SynthesisLimits& limits = {}) {
  const StatusOr<Synthesis> made = SynthesizeBroadcastTrees(
      {.topology = &topology, .collective = &collective, .size_bytes = size, .limits = limits});
  EXPECT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)), OkStatus());
  EXPECT_EQ(made->collective.num_chunks(), limits.chunks.value_or(made->collective.num_chunks()));
  const Simulation simulation = Simulate(made->schedule, made->collective, topology, {.size_bytes = size});
  const StatusOr<Bound> bound = LowerBound(topology, collective, size, TimeModel::kPipelined);
  EXPECT_GE(simulation.time_ps, bound->bound_ps);
  return static_cast<double>(simulation.time_ps) / static_cast<double>(std::max<int64_t>(bound->bound_ps, 1));
}

TEST(ForestBroadcast, MeetsTheCut) {
  struct Case {
    std::string name;
    Topology topology;
  };
  const std::vector<Case> cases = {
      {"torus 8x8", MakeGrid({8, 8}, true)},
      {"mesh 5x5", MakeGrid({5, 5}, false)},
      {"torus 3x3x3", MakeGrid({3, 3, 3}, true)},
      {"hypercube 5", MakeHypercube(5)},
      {"full mesh 16", MakeFullMesh(16)},
      {"ring 7", MakeRing(7)},
      {"dgx1", testing::MakeDgx1()},
      {"full mesh 80", MakeFullMesh(80)},
      {"one-way ring", MakeDigraph(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}})},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    for (CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce})
      EXPECT_LE(Ratio(c.topology, Of(c.topology, kind, c.topology.num_ranks() / 2), int64_t{1} << 30), 1.015);
  }
}

// Strongly connected: a ring one way, and random links of random speeds besides.
TEST(ForestBroadcast, RandomDigraphs) {
  Random random(17);
  for (int32_t trial = 0; trial < 40; ++trial) {
    const int32_t ranks = 2 + static_cast<int32_t>(random.Below(9));
    TopologySpec spec;
    for (int32_t r = 0; r < ranks; ++r)
      spec.nodes.push_back({NodeKind::kGpu, std::to_string(r), std::nullopt});
    const auto join = [&](int32_t from, int32_t to) {
      const int64_t speed = trial % 2 == 0 ? 4 : 1 + static_cast<int64_t>(random.Below(97));
      spec.links.push_back({NodeId(from), NodeId(to), speed * 1'000'000'000, 500'000, 0});
    };
    for (int32_t r = 0; r < ranks; ++r) join(r, (r + 1) % ranks);
    for (int32_t i = 0; i < 2 * ranks; ++i) {
      const int32_t from = static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks)));
      const int32_t to = static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks)));
      if (from != to) join(from, to);
    }
    const Topology topology = Topology::Create(std::move(spec)).value();
    SCOPED_TRACE(fmt::format("trial {}: {} ranks", trial, ranks));
    for (CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
      const Collective collective =
          Of(topology, kind, static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks))));
      EXPECT_LE(Ratio(topology, collective, int64_t{1} << 30), 1.06);
      Ratio(topology, collective, 1000);
      for (int32_t chunks : {1, 5, 64}) {
        SynthesisLimits limits;
        limits.chunks = chunks;
        Ratio(topology, collective, 1 << 20, limits);
      }
    }
  }
}

TEST(ForestBroadcast, SmallSizesTakeTheShallowestTree) {
  const Topology torus = MakeGrid({8, 8}, true);
  for (CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce})
    EXPECT_LE(Ratio(torus, Of(torus, kind, 5), 64), 1.01);
}

// Deep trees fill sooner with short chunks, and one message an arc has them all.
TEST(ForestBroadcast, MiddleSizesFollowOneAnotherInLongMessages) {
  const Topology torus = MakeGrid({8, 8}, true), mesh = MakeGrid({8, 8}, false);
  for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
    EXPECT_LE(Ratio(torus, Of(torus, kind, 5), 1 << 20), 1.7);
    EXPECT_LE(Ratio(torus, Of(torus, kind, 5), 64 << 20), 1.04);
    EXPECT_LE(Ratio(mesh, Of(mesh, kind, 0), 64 << 20), 1.02);
    const Collective collective = Of(torus, kind, 5);
    const StatusOr<Synthesis> made =
        SynthesizeBroadcastTrees({.topology = &torus, .collective = &collective, .size_bytes = 64 << 20});
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(made->schedule.size(), 4 * 63);
  }
}

// A prime number of chunks is dealt out unevenly to as many trees as the cut allows.
TEST(ForestBroadcast, ChunksNeedNotDivideByTheTrees) {
  const Topology mesh = MakeGrid({4, 4}, false);
  for (const auto& [chunks, ratio] : {std::pair(1, 2.01), std::pair(2, 1.15), std::pair(3, 1.4),
                                      std::pair(17, 1.08), std::pair(127, 1.02), std::pair(128, 1.02)}) {
    SynthesisLimits limits;
    limits.chunks = chunks;
    for (CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce})
      EXPECT_LE(Ratio(mesh, Of(mesh, kind, 5), int64_t{1} << 30, limits), ratio) << chunks;
  }
}

TEST(ForestBroadcast, TakesFewerSlicesWhereStepsAreFew) {
  const Topology mesh = MakeGrid({4, 4}, false);
  const Collective collective = Of(mesh, CollectiveKind::kReduce, 5);
  for (int32_t steps = 4; steps < 60; ++steps) {
    SynthesisLimits limits;
    limits.steps = steps;
    const StatusOr<Synthesis> made = SynthesizeBroadcastTrees(
        {.topology = &mesh, .collective = &collective, .size_bytes = int64_t{1} << 30, .limits = limits});
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_LE(made->schedule.num_steps(), steps);
    EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, mesh)), OkStatus());
  }
}

// 4 × 10^18 B/s: their sum does not fit, in units of their divisor it does.
Topology RingOfHugeLinks(int64_t last_bytes_per_s) {
  TopologySpec spec = MakeRing(4).spec();
  for (Link& link : spec.links) link.bandwidth_bytes_per_s = 1'000'000'000'000'000;
  spec.links.back().bandwidth_bytes_per_s = last_bytes_per_s;
  return Topology::Create(std::move(spec)).value();
}

TEST(ForestBroadcast, HugeBandwidths) {
  for (const int64_t last_bytes_per_s : {1'000'000'000'000'000, 999'999'999'999'999}) {
    const Topology ring = RingOfHugeLinks(last_bytes_per_s);
    EXPECT_LE(Ratio(ring, Of(ring, CollectiveKind::kBroadcast, 0), int64_t{1} << 52), 1.02);
  }
}

TEST(ForestBroadcast, OneRankHasNothingToDo) {
  const Topology one = MakeFullMesh(1);
  EXPECT_EQ(Ratio(one, Of(one, CollectiveKind::kBroadcast, 0), 1024), 0);
}

TEST(ForestBroadcast, Refusals) {
  const Topology mesh = MakeGrid({3, 3}, false), switched = testing::MakeSwitch(4);
  SynthesisLimits one;
  one.steps = 1;
  struct Case {
    const Topology& topology;
    SynthesisLimits limits;
    std::string text;
  };
  for (const Case& c : std::vector<Case>{
           {switched,
            {},
            fmt::format(
                "forest: {}: 4 members among 5 nodes; spanning trees need GPUs alone, all of them members",
                switched.name())},
           {mesh, one,
            fmt::format(
                "forest: broadcast on {}: 4 steps at least were used; at most 1 are allowed; hint: --steps=4",
                mesh.name())},
       }) {
    const Collective collective = Of(c.topology, CollectiveKind::kBroadcast, 0);
    EXPECT_EQ(
        SynthesizeBroadcastTrees(
            {.topology = &c.topology, .collective = &collective, .size_bytes = 1024, .limits = c.limits})
            .status()
            .message(),
        c.text);
  }
}

}  // namespace
}  // namespace xccl::forest
