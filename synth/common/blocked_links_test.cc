#include "synth/common/blocked_links.h"

#include <gtest/gtest.h>

#include <vector>

#include "synth/common/test_machines.h"

namespace xccl {
namespace {

// gpu 0 -10-> switch 1 -40-> switch 2 -20-> gpu 3 -40-> switch 4 -40-> gpu 5
Topology MakeChain() { return testing::MakeLine({10, 40, 20, 40, 40}, {1, 2, 4}); }

std::vector<double> Times(const BlockedLinks& held, std::vector<LinkId> path) {
  std::vector<double> times;
  held.BlockingFactors(path, times);
  return times;
}

TEST(BlockedLinks, CountForTheSlowestLinkBeforeThem) {
  const Topology topology = MakeChain();
  const std::vector<LinkId> path = {LinkId(0), LinkId(1), LinkId(2)};
  EXPECT_EQ(Times(BlockedLinks(topology, Direction::kForwards, 1), path), (std::vector<double>{1, 4, 2}));
  EXPECT_EQ(Times(BlockedLinks(topology, Direction::kForwards, 0.5), path),
            (std::vector<double>{1, 2.5, 1.5}));
  EXPECT_EQ(Times(BlockedLinks(topology, Direction::kForwards, 0), path), (std::vector<double>{1, 1, 1}));
  // The last link is fed by none, and holds the one before it, which is twice as fast.
  EXPECT_EQ(Times(BlockedLinks(topology, Direction::kBackwards, 1), path), (std::vector<double>{1, 2, 1}));
}

TEST(BlockedLinks, AGpuHasTheWholeSegmentBeforeItSendsItOn) {
  const Topology topology = MakeChain();
  const BlockedLinks held(topology, Direction::kForwards, 1);
  EXPECT_EQ(Times(held, {LinkId(2), LinkId(3), LinkId(4)}), (std::vector<double>{1, 1, 1}));
}

TEST(HasBlockedLinks, WhereASlowerLinkEntersASwitch) {
  EXPECT_TRUE(HasBlockedLinks(MakeChain()));
  EXPECT_FALSE(HasBlockedLinks(testing::MakeSwitch(4)));
  EXPECT_FALSE(HasBlockedLinks(testing::MakeRing(4)));
}

}  // namespace
}  // namespace xccl
