#include "topologies/submachine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "topologies/load/load.h"

namespace xccl {
namespace {

std::vector<Rank> Ranks(const std::vector<int32_t>& numbers) {
  std::vector<Rank> ranks;
  for (int32_t r : numbers) ranks.push_back(Rank(r));
  return ranks;
}

TEST(MembersAlone, KeepsWhatLiesBetweenThem) {
  struct Case {
    std::string machine;
    std::vector<int32_t> members;
    int32_t nodes, links, hosts;
  };
  const std::vector<Case> cases = {
      {"ring:8", {0, 1, 2, 3}, 4, 6, 1},      // a line
      {"ring:8", {0, 4}, 2, 0, 1},            // not connected without the others
      {"torus:4x4", {0, 1, 2, 3}, 4, 8, 1},   // one ring
      {"nvswitch:8", {2, 5}, 3, 4, 1},        // the switch stays
      {"nvswitch:8", {2}, 1, 0, 1},           // a switch with one neighbour is a dead end
      {"leaf-spine:2x2x2", {0, 1}, 3, 4, 2},  // the spines lead nowhere
      {"leaf-spine:2x2x2", {0, 2}, 6, 12, 2},
      {"rail-2", {0, 8}, 0, 0, 2},           // the numbers are checked below
      {"torus:2x2", {3, 1, 0, 2}, 4, 8, 1},  // all of them
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.machine);
    const Topology whole = LoadTopology(c.machine).value();
    const Submachine alone = MembersAlone(whole, Ranks(c.members));
    EXPECT_EQ(alone.topology.num_ranks(), static_cast<int32_t>(c.members.size()));
    ASSERT_EQ(alone.rank.size(), c.members.size());
    EXPECT_TRUE(std::is_sorted(alone.rank.begin(), alone.rank.end()));
    ASSERT_EQ(alone.link.size(), static_cast<size_t>(alone.topology.num_links()));
    for (int32_t l = 0; l < alone.topology.num_links(); ++l) {
      const Link& here = alone.topology.link(LinkId(l));
      const Link& there = whole.link(alone.link[static_cast<size_t>(l)]);
      EXPECT_EQ(here.bandwidth_bytes_per_s, there.bandwidth_bytes_per_s);
      EXPECT_EQ(alone.topology.node(here.from).id, whole.node(there.from).id);
      EXPECT_EQ(alone.topology.node(here.to).id, whole.node(there.to).id);
      if (const auto rank = alone.topology.RankOf(here.from)) {
        EXPECT_EQ(whole.NodeOf(alone.rank[rank->index()]), there.from);
      }
    }
    EXPECT_EQ(alone.topology.num_hosts(), c.hosts);
    if (c.nodes == 0) continue;
    EXPECT_EQ(alone.topology.num_nodes(), c.nodes);
    EXPECT_EQ(alone.topology.num_links(), c.links);
  }
}

TEST(MembersAlone, GroupsThatHangAlikeAreEqual) {
  const Topology whole = LoadTopology("rail-4").value();
  const auto links = [&](const std::vector<int32_t>& members) {
    return MembersAlone(whole, Ranks(members)).topology.spec().links;
  };
  EXPECT_EQ(links({0, 1, 2, 3, 4, 5, 6, 7}), links({16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(links({0, 8, 16, 24}), links({5, 13, 21, 29}));
}

Link Joined(int32_t from, int32_t to) {
  return Link{.from = NodeId(from), .to = NodeId(to), .bandwidth_bytes_per_s = 1'000'000'000};
}

// GPUs 0 and 1 behind switch 2; NIC 3 at GPU 0, and CPU 4 behind it.
Topology Machine(bool with_nic) {
  TopologySpec spec{.name = "m", .source = "", .hosts = {}, .nodes = {}, .links = {}, .warnings = {}};
  const NodeKind kinds[] = {NodeKind::kGpu, NodeKind::kGpu, NodeKind::kSwitch, NodeKind::kNic,
                            NodeKind::kCpu};
  for (int32_t n = 0; n < 5; ++n) {
    Node node;
    node.kind = kinds[n];
    node.id = std::to_string(n);
    spec.nodes.push_back(node);
  }
  for (int32_t gpu : {0, 1}) {
    spec.links.push_back(Joined(gpu, 2));
    spec.links.push_back(Joined(2, gpu));
  }
  if (with_nic) {
    for (const auto& [a, b] : {std::pair{0, 3}, std::pair{3, 4}}) {
      spec.links.push_back(Joined(a, b));
      spec.links.push_back(Joined(b, a));
    }
  }
  return *Topology::Create(spec);
}

TEST(WithoutDeadEnds, ChainsThatLeadNowhereGo) {
  const std::optional<Topology> pruned = WithoutDeadEnds(Machine(true));
  ASSERT_TRUE(pruned.has_value());
  EXPECT_EQ(*pruned, Machine(false));
}

// A ring of switches behind one GPU joins it to nothing else.
TEST(WithoutDeadEnds, RingsBehindOneGpuGo) {
  TopologySpec spec = Machine(false).spec();
  for (const char* id : {"5", "6", "7"})
    spec.nodes.push_back(
        {.kind = NodeKind::kSwitch, .id = id, .host = {}, .multicast = false, .reduce = false});
  const Topology bare = *Topology::Create(spec);
  for (const auto& [a, b] : {std::pair{1, 5}, std::pair{5, 6}, std::pair{6, 7}, std::pair{7, 1}}) {
    spec.links.push_back(Joined(a, b));
    spec.links.push_back(Joined(b, a));
  }
  const std::optional<Topology> pruned = WithoutDeadEnds(*Topology::Create(spec));
  ASSERT_TRUE(pruned.has_value());
  EXPECT_EQ(*pruned, bare);
}

TEST(WithoutDeadEnds, NothingToTakeAway) { EXPECT_FALSE(WithoutDeadEnds(Machine(false)).has_value()); }

TEST(WithoutRelays, KeepsNumbersOfRanks) {
  const Topology whole = LoadTopology("ring:4").value();
  const Topology without = WithoutRelays(whole, Ranks({0, 1, 2}));
  EXPECT_EQ(without.num_ranks(), 4);
  EXPECT_EQ(without.num_links(), 4);
  EXPECT_TRUE(without.Out(without.NodeOf(Rank(3))).empty());
  EXPECT_TRUE(WithoutRelays(whole, Ranks({0, 1, 2, 3})) == whole);
}

}  // namespace
}  // namespace xccl
