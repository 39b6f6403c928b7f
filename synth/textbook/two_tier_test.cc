// Two-tier alltoallv: Birkhoff's stages, plans that verify, and how near their time is to the bound.
#include "synth/textbook/two_tier.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"
#include "synth/textbook/birkhoff.h"
#include "synth/textbook/hierarchical_alltoall.h"

namespace xccl {
namespace {

using testing::MakeCluster;
using testing::MakeSwitch;
using testing::SpecOf;

// Few pairs have most of the data: a count is 1 to 100, one in eight is 20 times as much.
Collective Skewed(const Topology& topology, uint64_t seed) {
  Random random(seed);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAlltoallv;
  spec.ranks = AllRanks(topology.num_ranks());
  for (size_t i = 0; i < spec.ranks.size() * spec.ranks.size(); ++i) {
    const auto count = static_cast<int64_t>(1 + random.Below(100));
    spec.counts.push_back(random.Below(8) == 0 ? 20 * count : count);
  }
  return *Collective::Create(spec);
}

TEST(Birkhoff, StagesAreMatchingsAndAddUpToTheFullestLine) {
  Random random(1);
  for (int32_t n = 1; n <= 12; ++n) {
    for (int round = 0; round < 20; ++round) {
      std::vector<int64_t> demands;
      for (int32_t i = 0; i < n * n; ++i)
        demands.push_back(random.Below(3) == 0 ? 0 : static_cast<int64_t>(random.Below(50)));
      std::vector<int64_t> left = demands;
      int64_t fullest = 0, total = 0;
      for (int32_t i = 0; i < n; ++i) {
        int64_t row = 0, column = 0;
        for (int32_t j = 0; j < n; ++j) {
          row += demands[static_cast<size_t>(i * n + j)];
          column += demands[static_cast<size_t>(j * n + i)];
        }
        fullest = std::max({fullest, row, column});
      }
      const std::vector<BirkhoffStage> stages = BirkhoffStages(demands, n);
      EXPECT_LE(stages.size(), static_cast<size_t>(n * n - 2 * n + 2));
      for (const BirkhoffStage& stage : stages) {
        EXPECT_GT(stage.amount, 0);
        total += stage.amount;
        std::vector<int32_t> sorted = stage.to;
        std::sort(sorted.begin(), sorted.end());
        for (int32_t i = 0; i < n; ++i) {
          EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
          left[static_cast<size_t>(i * n + stage.to[static_cast<size_t>(i)])] -= stage.amount;
        }
      }
      EXPECT_EQ(total, fullest);
      for (int64_t l : left) EXPECT_LE(l, 0);
    }
  }
}

// The bar: skewed demands of 32 ranks within 5 % of the bound.
TEST(TwoTier, SkewedDemandsComeNearTheBound) {
  const Topology cluster = MakeCluster(4, 8);
  const RankGraph graph(cluster);
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Collective collective = Skewed(cluster, seed);
    const StatusOr<Synthesis> planned = PlanTwoTier(graph, collective);
    ASSERT_TRUE(planned.ok()) << planned.status().message();
    const Synthesis& made = *planned;
    ASSERT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, cluster)), OkStatus());
    const int64_t size = int64_t{1} << 30;
    const Simulation simulation = Simulate(made.schedule, made.collective, cluster, {.size_bytes = size});
    const StatusOr<Bound> bound = LowerBound(cluster, collective, size, TimeModel::kPipelined);
    ASSERT_TRUE(bound.ok());
    EXPECT_GE(simulation.time_ps, bound->bound_ps);
    EXPECT_LE(static_cast<double>(simulation.time_ps), 1.05 * static_cast<double>(bound->bound_ps)) << seed;
  }
}

// Counts of zero, one host pair alone, members in odd orders, even parts.
TEST(TwoTier, OddDemandsVerify) {
  const Topology cluster = MakeCluster(3, 4);
  const RankGraph graph(cluster);
  const std::vector<std::vector<Rank>> lists = {AllRanks(cluster.num_ranks()),
                                                {Rank(9), Rank(1), Rank(4), Rank(0), Rank(10), Rank(5)}};
  for (const std::vector<Rank>& ranks : lists) {
    CollectiveSpec lonely = SpecOf(CollectiveKind::kAlltoallv, ranks);
    std::fill(lonely.counts.begin(), lonely.counts.end(), 0);
    lonely.counts[1] = 7;
    CollectiveSpec vast = SpecOf(CollectiveKind::kAlltoallv, ranks);
    for (int64_t& count : vast.counts) count *= 1'000'000'000'000;
    for (const CollectiveSpec& spec : {SpecOf(CollectiveKind::kAlltoall, ranks),
                                       SpecOf(CollectiveKind::kAlltoallv, ranks), lonely, vast}) {
      const Collective collective = *Collective::Create(spec);
      const StatusOr<Synthesis> planned = PlanTwoTier(graph, collective);
      ASSERT_TRUE(planned.ok()) << planned.status().message();
      const Synthesis& made = *planned;
      EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, cluster)), OkStatus());
      for (ChunkId c(0); c.value < made.collective.num_chunks(); ++c.value)
        EXPECT_TRUE(made.collective.Weight(c) > 0 ||
                    made.collective.PartWeight(made.collective.PartOf(c)) == 0)
            << c.value;
      Schedule normalized = made.schedule;
      Normalize(normalized);
      EXPECT_TRUE(normalized == made.schedule);
    }
  }
}

TEST(HierarchicalAlltoall, CombinesWhereMessagesCostMost) {
  const Topology cluster = MakeCluster(4, 4);
  const Collective alltoall =
      *Collective::Create(SpecOf(CollectiveKind::kAlltoall, AllRanks(cluster.num_ranks())));
  SynthesisRequest request;
  request.topology = &cluster;
  request.collective = &alltoall;
  request.size_bytes = 1 << 10;
  request.model = TimeModel::kBlocking;
  const Engine engine = HierarchicalAlltoallEngine();
  const StatusOr<Synthesis> small = engine.Synthesize(request);
  ASSERT_TRUE(small.ok()) << small.status().message();
  EXPECT_EQ(small->note, "combined by host");
  EXPECT_EQ(small->schedule.num_steps(), 2);
  request.size_bytes = 1 << 30;
  request.model = TimeModel::kPipelined;
  const StatusOr<Synthesis> large = engine.Synthesize(request);
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(large->note, "balanced over rails, 3 stages");
}

TEST(HierarchicalAlltoall, SaysWhyNot) {
  const Topology machine = MakeSwitch(4);
  const Collective alltoall =
      *Collective::Create(SpecOf(CollectiveKind::kAlltoall, AllRanks(machine.num_ranks())));
  SynthesisRequest request;
  request.topology = &machine;
  request.collective = &alltoall;
  EXPECT_EQ(HierarchicalAlltoallEngine().Synthesize(request).status().message(),
            "hierarchical-alltoall: all 4 ranks are on one host; expected several; hint: --engine=flow");
}

}  // namespace
}  // namespace xccl
