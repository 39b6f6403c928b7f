#include "ir/bound.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/test_graphs.h"

namespace xccl {
namespace {

using testing::MakeCollective;
using testing::MakeGraph;

TEST(CheckReachable, NamesTwoRanks) {
  const Topology topology = MakeGraph("pair", 2, 0, {{0, 1}});
  EXPECT_EQ(CheckReachable(topology, MakeCollective(CollectiveKind::kAllgather, 2)),
            Infeasible("pair: no path from rank 1 to rank 0, which allgather needs"));
  EXPECT_EQ(CheckReachable(topology, MakeCollective(CollectiveKind::kBroadcast, 2, Rank(0))), OkStatus());
}

}  // namespace
}  // namespace xccl
