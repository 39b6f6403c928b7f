// Broadcasts and reductions over levels of small clusters.
#include "synth/levels/deal.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"
#include "synth/levels/levels_engine.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kBroadcast, CollectiveKind::kReduce};

Collective From(Rank root, CollectiveKind kind, const Topology& topology) {
  CollectiveSpec spec = testing::SpecOf(kind, AllRanks(topology.num_ranks()));
  spec.root = root;
  return *Collective::Create(std::move(spec));
}

SynthesisRequest RequestFor(const Topology& topology, const Collective& collective, int64_t size_bytes) {
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  request.size_bytes = size_bytes;
  return request;
}

TEST(Deal, PlansAreRightFromEveryRoot) {
  for (const char* name :
       {"leaf-spine:4x4x4", "fat-tree:k=4", "fat-tree:k=6", "fat-tree:rails=4,hosts=6", "rail-2", "rail-4"}) {
    const Topology topology = *LoadTopology(name);
    for (const CollectiveKind kind : kKinds) {
      for (int32_t root = 0; root < topology.num_ranks(); root += 5) {
        const Collective collective = From(Rank(root), kind, topology);
        const StatusOr<Synthesis> made = LevelsEngine().Synthesize(RequestFor(topology, collective, 1 << 16));
        ASSERT_TRUE(made.ok()) << name << ": " << made.status().message();
        EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)), OkStatus())
            << fmt::format("{}, {} from {}", name, collective.name(), root);
        int64_t moved = 0;
        for (int64_t t = 0; t < made->schedule.size(); ++t) moved += made->schedule.at(t).count;
        EXPECT_EQ(moved, int64_t{made->collective.num_chunks()} * (topology.num_ranks() - 1));
      }
    }
  }
}

// The groups of a large machine are so few that a schedule stays short.
TEST(Deal, FewerPiecesForMoreRanks) {
  const Topology topology = *LoadTopology("fat-tree:k=6");
  const SymmetryGroup group = FindTranslations(topology);
  const LevelFinder finder(topology, group);
  const Levels levels = *finder.Make(finder.Ends(1 << 30), "levels");
  EXPECT_EQ(Dealing::Create(finder, levels, topology, group, 1 << 20, "levels")->pieces(), 18);
  EXPECT_EQ(Dealing::Create(finder, levels, topology, group, 6 * 54, "levels")->pieces(), 6);
  EXPECT_EQ(Dealing::Create(finder, levels, topology, group, 100, "levels").status().message(),
            "levels: 6 pieces for each of 54 ranks; expected at most 100 transfers");
}

// A small broadcast on a fat tree took a hop of a tree after another, up to six times the bound.
TEST(Deal, IsNearTheBoundForSmallSizes) {
  const Topology topology = *LoadTopology("fat-tree:k=8");
  for (const CollectiveKind kind : kKinds) {
    const Collective collective = From(Rank(0), kind, topology);
    const SynthesisRequest request = RequestFor(topology, collective, 1 << 16);
    const Synthesis made = *LevelsEngine().Synthesize(request);
    const Simulation simulation =
        Simulate(made.schedule, made.collective, topology, {.size_bytes = request.size_bytes});
    const Bound bound = *LowerBound(topology, collective, request.size_bytes, request.model);
    EXPECT_LE(static_cast<double>(simulation.time_ps), 2.3 * static_cast<double>(bound.bound_ps))
        << collective.name();
  }
}

TEST(Deal, NeedsLevels) {
  const Topology topology = *LoadTopology("nvswitch:6");
  const Collective collective = From(Rank(0), CollectiveKind::kBroadcast, topology);
  EXPECT_EQ(
      LevelsEngine().Synthesize(RequestFor(topology, collective, 1 << 16)).status().message(),
      "levels: one level of ranks; expected hosts, pods or others in a broadcast; hint: --engine=spread");
}

}  // namespace
}  // namespace xccl
