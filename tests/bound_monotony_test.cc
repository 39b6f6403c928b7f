// A machine that loses links, or whose links get slower, has no lower bound below the whole machine's.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "ir/bounds/bound.h"
#include "tests/testing/check.h"
#include "tests/testing/collectives.h"
#include "tests/testing/topologies.h"

namespace xccl {
namespace {

// Every link is removed, slowed down to a third, or kept.
Topology Weakened(const Topology& topology, Random& random) {
  TopologySpec spec = topology.spec();
  const uint64_t keep = 2 + random.Below(20);
  std::vector<Link> kept;
  for (Link link : spec.links) {
    if (random.Below(keep) == 0) continue;
    if (random.Below(keep) == 0)
      link.bandwidth_bytes_per_s = std::max<int64_t>(1, link.bandwidth_bytes_per_s / 3);
    kept.push_back(link);
  }
  spec.links = std::move(kept);
  return Topology::Create(std::move(spec)).value();
}

void CheckMachine(const Topology& whole, uint64_t seed) {
  Random random(seed);
  const Topology weak = Weakened(whole, random);
  constexpr int64_t kSizes[] = {1 << 10, 1 << 20, int64_t{1} << 30};
  for (const Collective& collective : testing::AllCollectives(whole.num_ranks())) {
    if (!CheckReachable(weak, collective).ok()) continue;
    const int64_t size = kSizes[random.Below(3)];
    for (const BoundEffort effort : {BoundEffort::kFast, BoundEffort::kExact}) {
      const Bound before = LowerBound(whole, collective, size, TimeModel::kPipelined, effort).value();
      const Bound after = LowerBound(weak, collective, size, TimeModel::kPipelined, effort).value();
      EXPECT_GE(static_cast<double>(after.bound_ps), static_cast<double>(before.bound_ps) * (1 - 1e-9) - 1)
          << whole.name() << ", weakened with " << seed << ": " << testing::Describe(collective) << " of "
          << size << " by " << ToString(before.kind) << ", then " << ToString(after.kind)
          << (effort == BoundEffort::kFast ? ", fast" : "");
    }
  }
}

void CheckSeed(uint64_t seed) {
  const int32_t ranks = seed % 4 == 0 ? 24 : 8;
  CheckMachine(testing::MakeRandomMachine(seed, {.max_ranks = ranks, .max_switches = ranks / 3}), seed);
}

TEST(BoundMonotony, LosingLinksNeverLowersABound) {
  const uint64_t seeds = testing::LongRun() ? 2000 : 60;
  for (uint64_t seed = 1; seed <= seeds; ++seed) CheckSeed(seed);
}

// Sweeps follow the links: sweeps alone miss the worst cuts of the following machines.
TEST(BoundMonotony, WhereSweepsMissedTheWorstCut) {
  for (const uint64_t seed : {228, 488, 780}) CheckSeed(seed);
}

}  // namespace
}  // namespace xccl
