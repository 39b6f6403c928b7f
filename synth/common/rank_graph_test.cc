// The number of hops that is known without building a graph.
#include "synth/common/rank_graph.h"

#include <gtest/gtest.h>

#include "synth/common/test_machines.h"

namespace xccl {
namespace {

// It counts each rank as next to itself behind a switch, and two ways between ranks as two hops.
TEST(MostHops, IsAtLeastTheHopsAndAtMostTwiceAsMany) {
  for (const testing::Machine& machine : testing::Machines()) {
    SCOPED_TRACE(machine.name);
    const int64_t hops = RankGraph(machine.topology).num_hops();
    EXPECT_GE(MostHops(machine.topology), hops);
    EXPECT_LE(MostHops(machine.topology), 2 * (hops + machine.topology.num_ranks()));
  }
}

TEST(MostHops, CountsPairsBehindSwitchesAndCables) {
  EXPECT_EQ(MostHops(testing::MakeRing(6)), 12);
  EXPECT_EQ(MostHops(testing::MakeSwitch(5)), 25);
  EXPECT_EQ(MostHops(testing::MakeCluster(3, 2)), 3 * 4 + 36);
}

}  // namespace
}  // namespace xccl
