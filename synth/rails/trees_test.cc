#include "synth/rails/trees.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace xccl {
namespace {

// Every tree spans all hosts, parents first, and levels count edges from host 0.
void ExpectSpanning(const HostTrees& made, int32_t hosts) {
  for (const std::vector<HostEdge>& tree : made.trees) {
    std::vector<int32_t> level(static_cast<size_t>(hosts), -1);
    level[0] = 0;
    for (const HostEdge& edge : tree) {
      ASSERT_GE(level[static_cast<size_t>(edge.parent)], 0);
      ASSERT_EQ(level[static_cast<size_t>(edge.child)], -1);
      level[static_cast<size_t>(edge.child)] = level[static_cast<size_t>(edge.parent)] + 1;
      ASSERT_EQ(edge.level, level[static_cast<size_t>(edge.child)]);
    }
    ASSERT_EQ(static_cast<int32_t>(tree.size()), hosts - 1);
  }
}

TEST(DisjointTrees, UseEveryLaneOnceInEachDirection) {
  for (int32_t lanes = 2; lanes <= 10; ++lanes) {
    for (int32_t hosts = 2; hosts <= 150; ++hosts) {
      const HostTrees made = DisjointTrees(hosts, lanes);
      ASSERT_EQ(static_cast<int32_t>(made.trees.size()), lanes);
      ExpectSpanning(made, hosts);
      std::set<std::pair<int32_t, int32_t>> out, in;
      for (const std::vector<HostEdge>& tree : made.trees) {
        for (const HostEdge& edge : tree) {
          ASSERT_TRUE(0 <= edge.lane && edge.lane < lanes);
          ASSERT_TRUE(out.insert({edge.parent, edge.lane}).second)
              << hosts << " hosts, " << lanes << " lanes";
          ASSERT_TRUE(in.insert({edge.child, edge.lane}).second) << hosts << " hosts, " << lanes << " lanes";
        }
      }
    }
  }
}

TEST(DisjointTrees, AreShallow) {
  EXPECT_EQ(DisjointTrees(2, 8).levels(), 1);
  EXPECT_EQ(DisjointTrees(128, 8).levels(), 4);
  EXPECT_EQ(DisjointTrees(1024, 8).levels(), 5);
  EXPECT_EQ(DisjointTrees(16384, 8).levels(), 6);
  EXPECT_EQ(DisjointTrees(1024, 2).levels(), 11);
}

// Subtrees are ranges of hosts, so few edges join hosts that are far apart.
TEST(DisjointTrees, CrossPodsSeldom) {
  int32_t crossing = 0;
  for (const std::vector<HostEdge>& tree : DisjointTrees(1024, 8).trees)
    for (const HostEdge& edge : tree) crossing += edge.parent / 64 != edge.child / 64 ? 1 : 0;
  EXPECT_LE(crossing, 8 * 1023 / 8);
}

// Hosts of groups of drawn sizes, and groups of such groups.
TEST(NestedTrees, EnterEveryGroupOnceAndLeaveItOnceALane) {
  std::minstd_rand random(1);
  for (int32_t draw = 0; draw < 300; ++draw) {
    const auto lanes = static_cast<int32_t>(2 + random() % 9),
               hosts = static_cast<int32_t>(2 + random() % 200);
    std::vector<std::vector<int32_t>> groups(random() % 4);
    for (size_t k = 0; k < groups.size(); ++k) {
      int32_t group = 0;
      for (int32_t h = 0; h < hosts; ++h) {
        // A new group begins only where one of the level inside begins.
        const bool may = h > 0 && (k == 0 || groups[k - 1][static_cast<size_t>(h)] !=
                                                 groups[k - 1][static_cast<size_t>(h) - 1]);
        if (may && random() % 4 == 0) ++group;
        groups[k].push_back(group);
      }
    }
    const HostTrees made = NestedTrees(hosts, groups, lanes);
    ASSERT_EQ(static_cast<int32_t>(made.trees.size()), lanes);
    ExpectSpanning(made, hosts);
    std::set<std::pair<int32_t, int32_t>> out, in;
    std::map<std::pair<size_t, int32_t>, int32_t> leave;           // by level and group
    std::map<std::tuple<size_t, int32_t, size_t>, int32_t> enter;  // by level, group and tree
    for (size_t t = 0; t < made.trees.size(); ++t) {
      for (const HostEdge& edge : made.trees[t]) {
        ASSERT_TRUE(0 <= edge.lane && edge.lane < lanes);
        ASSERT_TRUE(out.insert({edge.parent, edge.lane}).second);
        ASSERT_TRUE(in.insert({edge.child, edge.lane}).second);
        for (size_t k = 0; k < groups.size(); ++k) {
          const int32_t from = groups[k][static_cast<size_t>(edge.parent)],
                        to = groups[k][static_cast<size_t>(edge.child)];
          if (from == to) continue;
          ASSERT_LE(++leave[std::pair(k, from)], lanes);
          ASSERT_EQ(++enter[std::tuple(k, to, t)], 1);
        }
      }
    }
  }
}

// Pods of 64 racks of 2 hosts.
TEST(NestedTrees, AreShallow) {
  std::vector<std::vector<int32_t>> groups(2);
  for (int32_t h = 0; h < 1024; ++h) {
    groups[0].push_back(h / 2);
    groups[1].push_back(h / 128);
  }
  EXPECT_LE(NestedTrees(1024, groups, 8).levels(), 13);
  EXPECT_EQ(NestedTrees(1024, {}, 8).levels(), DisjointTrees(1024, 8).levels());
  // Groups of fewer hosts than lanes.
  for (const int32_t members : {3, 5, 6, 20, 26}) {
    std::vector<int32_t> group_of;
    for (int32_t h = 0; h < 512; ++h) group_of.push_back(h / members);
    EXPECT_LE(NestedTrees(512, std::vector<std::vector<int32_t>>{group_of}, 32).levels(), 16) << members;
  }
}

TEST(EqualTrees, AreAsDeepAsTheirFanOut) {
  for (int32_t fanout : {1, 2, 5, 40}) {
    const HostTrees made = EqualTrees(30, 3, fanout);
    ExpectSpanning(made, 30);
    EXPECT_EQ(made.levels(), fanout == 1 ? 29 : fanout == 2 ? 4 : fanout == 5 ? 2 : 1);
    for (int32_t lane = 0; lane < 3; ++lane)
      for (const HostEdge& edge : made.trees[static_cast<size_t>(lane)]) EXPECT_EQ(edge.lane, lane);
  }
}

}  // namespace
}  // namespace xccl
