#include "ir/lower/chains.h"

#include <gtest/gtest.h>

#include "ir/testing/graphs.h"
#include "ir/testing/trees.h"

namespace xccl::lowering {
namespace {

using testing::Links;

// Ranks 0 and 1 (links 2r up, 2r + 1 down) hand their data to rank 2 together, which sends the sum to both.
Schedule ThroughTheSwitch(TransferOp first) {
  Schedule schedule;
  schedule.num_chunks = 2;
  schedule.Add(ChunkId(0), 2, Rank(0), Rank(2), Links({0, 2, 5}), first, 0);
  schedule.Add(ChunkId(0), 2, Rank(2), Rank(1), Links({4, 3, 1}), TransferOp::kCopy, 1);
  return schedule;
}

TEST(Chains, OneFromEverySourceToEveryDestination) {
  const Topology topology = TreeSwitch(3);
  using Chains = std::vector<std::vector<LinkId>>;
  EXPECT_EQ(ChainsOf(topology, Links({0, 5})), Chains({Links({0, 5})}));
  EXPECT_EQ(ChainsOf(topology, Links({4, 3, 1})), Chains({Links({4, 3}), Links({4, 1})}));
  EXPECT_EQ(ChainsOf(topology, Links({2, 0, 5})), Chains({Links({2, 5}), Links({0, 5})}));
  // Two leaves under a spine: rank 0 to all, over links 8 and 11 between the switches.
  const Topology leaves = TreeLeaves(2, 1);
  const std::vector<LinkId> tree =
      TreePath(leaves, Rank(0), std::vector{Rank(1), Rank(2), Rank(3)}, false, 0);
  for (const std::vector<LinkId>& chain : ChainsOf(leaves, tree)) {
    EXPECT_EQ(leaves.RankOf(leaves.link(chain.front()).from), Rank(0));
    EXPECT_TRUE(IsChain(leaves, chain));
  }
  EXPECT_EQ(ChainsOf(leaves, tree).size(), 3u);
}

TEST(Chains, ReplaceTheTreesOfASchedule) {
  const Topology topology = TreeSwitch(3);
  const Schedule trees = ThroughTheSwitch(TransferOp::kReduce);
  Schedule expected;
  expected.num_chunks = 2;
  expected.Add(ChunkId(0), 2, Rank(0), Rank(2), Links({0, 5}), TransferOp::kReduce, 0);
  expected.Add(ChunkId(0), 2, Rank(1), Rank(2), Links({2, 5}), TransferOp::kReduce, 0);
  expected.Add(ChunkId(0), 2, Rank(2), Rank(1), Links({4, 3}), TransferOp::kCopy, 1);
  expected.Add(ChunkId(0), 2, Rank(2), Rank(0), Links({4, 1}), TransferOp::kCopy, 1);
  EXPECT_EQ(WithoutTrees(trees, topology).value(), expected);
  EXPECT_EQ(WithoutTrees(expected, topology).value(), expected);
}

TEST(Chains, RefuseAReductionThatReplaces) {
  EXPECT_EQ(WithoutTrees(ThroughTheSwitch(TransferOp::kCopy), TreeSwitch(3)).status(),
            InvalidInput("transfer 0: step 0, rank 0: an in-switch reduction that replaces what rank 2 has; "
                         "expected one that adds to it, since a program adds up at the receiver"));
}

}  // namespace
}  // namespace xccl::lowering
