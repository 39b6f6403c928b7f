#include "synth/textbook/grid_trees.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/analysis/bitwise_same.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/synthesizer.h"
#include "synth/common/test_machines.h"
#include "synth/textbook/engines.h"

namespace xccl {
namespace {

const TextbookEngine& Mesh2d() {
  return *std::ranges::find(TextbookEngines(), "2d-mesh", &TextbookEngine::name);
}

struct Timed {
  Synthesis made;
  double ratio;
};

// Verifies and simulates 2d-mesh's plan of 1 GiB.
Timed PlanOf(const Topology& topology, CollectiveKind kind, std::optional<int32_t> chunks = {}) {
  const Collective collective = *Collective::Create(testing::SpecOf(kind, AllRanks(topology.num_ranks())));
  SynthesisRequest request{.topology = &topology, .collective = &collective, .size_bytes = 1 << 30};
  request.limits.chunks = chunks;
  RankGraphs graphs(topology);
  Synthesis made = *PlacedEngine::Place(Mesh2d(), graphs, request)->Make();
  EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, topology)).message(), "");
  EXPECT_TRUE(IsBitwiseSame(made.schedule, made.collective, topology));
  const Simulation simulation = Simulate(made.schedule, made.collective, topology, TimingOf(request));
  const Bound bound = *LowerBound(topology, collective, request.size_bytes, request.model);
  return {std::move(made), static_cast<double>(simulation.time_ps) / static_cast<double>(bound.bound_ps)};
}

// In three dimensions and on rings other trees would be shallower, and wait less.
// The bound of an allreduce on a mesh counts that every rank but one sends a sum and gets a copy of each
// byte. Few waves, as on large machines, leave their first sums and last copies alone on the links.
TEST(GridTrees, LoadLinksEvenly) {
  struct Case {
    std::vector<int32_t> dims;
    bool wraps;
    double most;  // time / bound
  };
  for (const Case& at :
       {Case{{8, 8}, false, 1.06}, Case{{4, 8}, false, 1.06}, Case{{3, 5}, false, 1.08},
        Case{{2, 7}, false, 1.08}, Case{{4, 4, 4}, false, 1.35}, Case{{2, 3, 4}, false, 1.35},
        Case{{4, 6}, true, 1.35}, Case{{3, 4, 5}, true, 1.35}}) {
    const Topology topology = testing::MakeGrid(at.dims, at.wraps);
    const std::string name = fmt::format("{}", fmt::join(at.dims, "x"));
    const Timed plan = PlanOf(topology, CollectiveKind::kAllreduce);
    EXPECT_LE(plan.ratio, at.most) << name;
    EXPECT_GE(plan.ratio, 1) << name;
    const Timed in_chunks = PlanOf(topology, CollectiveKind::kAllreduce, 7);
    EXPECT_EQ(in_chunks.made.collective.num_chunks(), 7) << name;
  }
}

// Copies on a large mesh waited for sums of trees that started a wave later: the plan took 1.23 x the bound.
TEST(GridTrees, CopiesDoNotWaitForLaterWaves) {
  EXPECT_LE(PlanOf(testing::MakeGrid({32, 32}, false), CollectiveKind::kAllreduce).ratio, 1.17);
}

// Dimensions of other bandwidths get other shares of the data: a link of the slow one carries less.
TEST(GridTrees, SharesFollowBandwidths) {
  TopologySpec spec = testing::MakeGrid({4, 4}, false).spec();
  for (Link& link : spec.links)
    if (std::abs(link.from.value - link.to.value) == 1) link.bandwidth_bytes_per_s *= 3;
  const Topology topology = *Topology::Create(std::move(spec));
  RankGraphs graphs(topology);
  const GridTrees trees = PackGridTrees(*DetectGrid(graphs.forward()), graphs.forward(), 1000);
  int64_t by_fast = 0, by_slow = 0;
  for (const GridTree& tree : trees.trees) (tree.order[0] == 1 ? by_fast : by_slow) += tree.weight;
  EXPECT_GT(by_fast, 2 * by_slow);
  EXPECT_LE(PlanOf(topology, CollectiveKind::kAllreduce).ratio, 1.3);
}

// Small allreduces go along lines, in fewer steps.
TEST(GridTrees, AreForLargeSizes) {
  const Topology topology = testing::MakeGrid({8, 8}, false);
  const Collective collective =
      *Collective::Create(testing::SpecOf(CollectiveKind::kAllreduce, AllRanks(topology.num_ranks())));
  RankGraphs graphs(topology);
  SynthesisRequest request{.topology = &topology, .collective = &collective, .size_bytes = 1 << 10};
  const int32_t small = PlacedEngine::Place(Mesh2d(), graphs, request)->Make()->schedule.num_steps();
  request.size_bytes = 1 << 30;
  EXPECT_LT(small, PlacedEngine::Place(Mesh2d(), graphs, request)->Make()->schedule.num_steps());
}

// The reflections of a mesh leave a quarter of the sources to plan for.
TEST(Alltoall, OfManyMovesIsKeptCompressed) {
  const Timed plan = PlanOf(testing::MakeGrid({16, 24}, false), CollectiveKind::kAlltoall);
  EXPECT_EQ(plan.made.schedule.symmetry.size(), 2u);
  EXPECT_LE(plan.ratio, 1.05);
}

}  // namespace
}  // namespace xccl
