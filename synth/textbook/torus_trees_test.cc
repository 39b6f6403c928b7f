#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/synthesizer.h"
#include "synth/common/test_machines.h"
#include "synth/textbook/engines.h"

namespace xccl {
namespace {

const TextbookEngine& TorusTrees() {
  return *std::ranges::find(TextbookEngines(), "torus-trees", &TextbookEngine::name);
}

struct Case {
  CollectiveKind kind;
  std::vector<int32_t> dims;
  int32_t root = 0;
};

struct Timed {
  Synthesis made;
  double ratio;  // time / bound
};

// Plans 1 GiB, proves the plan, and simulates it.
Timed PlanOf(const Case& at, const Topology& topology) {
  CollectiveSpec spec = testing::SpecOf(at.kind, AllRanks(topology.num_ranks()));
  spec.root = Rank(at.root);
  const Collective collective = *Collective::Create(std::move(spec));
  const SynthesisRequest request{.topology = &topology, .collective = &collective, .size_bytes = 1 << 30};
  RankGraphs graphs(topology);
  Synthesis made = *PlacedEngine::Place(TorusTrees(), graphs, request)->Make();
  EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, topology)).message(), "");
  const Simulation simulation = Simulate(made.schedule, made.collective, topology, TimingOf(request));
  const Bound bound = *LowerBound(topology, collective, request.size_bytes, request.model);
  return {std::move(made), static_cast<double>(simulation.time_ps) / static_cast<double>(bound.bound_ps)};
}

TEST(TorusTrees, ShareNoLinkAndBroadcastAtTheRateOfTheRoot) {
  for (const Case& at :
       {Case{CollectiveKind::kBroadcast, {3}}, Case{CollectiveKind::kBroadcast, {5, 5}, 2},
        Case{CollectiveKind::kBroadcast, {3, 4}, 7}, Case{CollectiveKind::kReduce, {4, 4}},
        Case{CollectiveKind::kBroadcast, {3, 4, 5}, 59}, Case{CollectiveKind::kReduce, {5, 3, 3}, 1},
        Case{CollectiveKind::kBroadcast, {3, 3, 4, 3}, 20}}) {
    SCOPED_TRACE(fmt::format("{} from {}", fmt::join(at.dims, "x"), at.root));
    const Topology topology = testing::MakeGrid(at.dims, true);
    const auto [made, ratio] = PlanOf(at, topology);
    EXPECT_LT(ratio, 1.02);  // segments are so long that filling the trees takes up to a 64th
    ASSERT_EQ(made.collective.num_chunks(), 2 * std::ssize(at.dims));
    ASSERT_EQ(made.schedule.size(), 2 * std::ssize(at.dims) * (topology.num_ranks() - 1));
    std::set<LinkId> used;
    for (int64_t t = 0; t < made.schedule.size(); ++t)
      for (const LinkId link : made.schedule.paths[made.schedule.path[t]])
        EXPECT_TRUE(used.insert(link).second);
  }
}

TEST(TorusTrees, AsksForATorus) {
  for (const Topology& topology : {testing::MakeGrid({4, 4}, false), testing::MakeGrid({2, 4}, true)}) {
    const Collective collective =
        *Collective::Create(testing::SpecOf(CollectiveKind::kBroadcast, AllRanks(topology.num_ranks())));
    const SynthesisRequest request{.topology = &topology, .collective = &collective};
    RankGraphs graphs(topology);
    const StatusOr<PlacedEngine> placed = PlacedEngine::Place(TorusTrees(), graphs, request);
    ASSERT_FALSE(placed.ok());
    EXPECT_EQ(
        placed.status().message(),
        "torus-trees: the links form no torus whose sides are all at least 3; expected one, with all its "
        "ranks as members; hint: --engine=forest");
  }
}

}  // namespace
}  // namespace xccl
