// Seeded random machines with every collective, on all ranks and on some of them, by every engine.
#include <gtest/gtest.h>

#include "base/random.h"
#include "ir/bounds/bound.h"
#include "ir/time_model.h"
#include "synth/engines.h"
#include "tests/testing/check.h"
#include "tests/testing/collectives.h"
#include "tests/testing/topologies.h"
#include "topologies/submachine.h"

namespace xccl::testing {
namespace {

class RandomMachines : public ::testing::TestWithParam<int> {};

std::vector<Rank> SomeRanks(int32_t ranks, Random& random) {
  std::vector<Rank> some = AllRanks(ranks);
  random.Shuffle(std::span(some));
  some.resize(1 + random.Below(some.size()));
  return some;
}

void CheckMachine(uint64_t seed) {
  const Topology topology = MakeRandomMachine(seed);
  Random random(seed);
  const auto check = [&](const Topology& machine, const Collective& collective) {
    SynthesisRequest request;
    request.topology = &machine;
    request.collective = &collective;
    request.size_bytes = int64_t{1} << random.Below(27);
    request.model = random.Below(3) == 0 ? TimeModel::kBlocking : TimeModel::kPipelined;
    request.seed = seed;
    CheckAllEngines(request);
  };
  for (const Collective& collective : AllCollectives(topology.num_ranks())) check(topology, collective);
  // Every third kind of collective on some ranks; three consecutive seeds cover all.
  const std::vector<Collective> kinds = SubsetCollectives(SomeRanks(topology.num_ranks(), random));
  std::vector<Collective> subset;
  for (size_t k = seed % 3; k < kinds.size(); k += 3) subset.push_back(kinds[k]);
  for (const Collective& collective : subset) check(topology, collective);
  // Once more on a machine without relays: ranks that are not members carry nothing.
  const Topology without = WithoutRelays(topology, subset.front().ranks());
  if (without == topology) return;
  for (const Collective& collective : subset)
    if (CheckReachable(without, collective).ok()) check(without, collective);
}

TEST_P(RandomMachines, EveryCollectiveByEveryEngine) {
  const uint64_t machines = LongRun() ? 100 : 2;
  for (uint64_t i = 0; i < machines; ++i) CheckMachine(static_cast<uint64_t>(GetParam()) * 1000 + i);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomMachines, ::testing::Range(0, 8));

TEST(RandomMachines, AreTheSameForTheSameSeed) {
  EXPECT_TRUE(MakeRandomMachine(5) == MakeRandomMachine(5));
  EXPECT_FALSE(MakeRandomMachine(5) == MakeRandomMachine(6));
}

TEST(RandomMachines, EnginesAreDeterministic) {
  const Topology topology = MakeRandomMachine(3);
  for (const Collective& collective : AllCollectives(topology.num_ranks())) {
    SynthesisRequest request;
    request.topology = &topology;
    request.collective = &collective;
    for (const Engine& engine : AllEngines()) {
      if (!engine.Serves(request).ok()) continue;
      const StatusOr<Synthesis> first = engine.Synthesize(request), second = engine.Synthesize(request);
      ASSERT_EQ(first.ok(), second.ok());
      if (first.ok()) {
        EXPECT_TRUE(first->schedule == second->schedule && first->collective == second->collective)
            << engine.name << ": " << Describe(collective);
      }
    }
  }
}

}  // namespace
}  // namespace xccl::testing
