#include "topologies/whole.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "topologies/failures.h"
#include "topologies/load/load.h"
#include "topologies/submachine.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {
namespace {

using Row = std::tuple<int32_t, int32_t, int64_t, int64_t, int64_t>;

std::vector<Row> LinksOf(const Topology& topology) {
  std::vector<Row> rows;
  for (const Link& l : topology.spec().links)
    rows.emplace_back(l.from.value, l.to.value, l.bandwidth_bytes_per_s, l.latency_ps, l.overhead_ps);
  std::ranges::sort(rows);
  return rows;
}

Topology Load(const std::string& name, LoadOptions options = {}) {
  return LoadTopology(name, options).value();
}

// Fails cables and finds them again.
void ExpectFound(const Topology& whole, int32_t cables, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << whole.name() << ", " << cables << " cables, seed " << seed);
  const Failure failure = FailCables(whole, cables, seed, {}).value();
  const std::optional<MissingLinks> missing = FindMissingLinks(failure.topology);
  ASSERT_TRUE(missing);
  EXPECT_EQ(std::ssize(missing->lost), whole.num_links() - failure.topology.num_links());
  EXPECT_TRUE(LinksOf(MakeWhole(failure.topology, *missing).value()) == LinksOf(whole));
}

TEST(Whole, FailedCablesOfClustersAreFound) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ExpectFound(Load("leaf-spine:4x4x4"), 1, seed);
    ExpectFound(Load("leaf-spine:4x4x4"), 2, seed);
    ExpectFound(Load("fat-tree:k=8"), 1, seed);
    LoadOptions hosts;
    hosts.hosts = 16;
    ExpectFound(Load("dgx-h100", hosts), 3, seed);
  }
}

TEST(Whole, SlowLinksAreFound) {
  LoadOptions degraded;
  degraded.degrades = {"leaf0->spine1=0.5"};
  const Topology slow = Load("leaf-spine:4x4x4", degraded);
  const std::optional<MissingLinks> missing = FindMissingLinks(slow);
  ASSERT_TRUE(missing);
  EXPECT_TRUE(missing->lost.empty());
  EXPECT_EQ(missing->slow.size(), 1u);
  EXPECT_EQ(LinksOf(MakeWhole(slow, *missing).value()), LinksOf(Load("leaf-spine:4x4x4")));
}

// Removes a host and cables, and finds them again.
TEST(Whole, LostHostsAreFound) {
  for (const char* name : {"leaf-spine:4x4x4", "fat-tree:k=8", "llama3-24k"}) {
    const Topology whole = Load(name);
    for (const int32_t host : {0, 1, whole.num_hosts() - 1}) {
      SCOPED_TRACE(testing::Message() << name << " without host " << host);
      std::vector<Rank> left;
      for (int32_t r = 0; r < whole.num_ranks(); ++r)
        if (whole.HostOf(Rank(r)).value != host) left.emplace_back(r);
      const Topology machine = FailCables(MembersAlone(whole, left).topology, 1, 1, {}).value().topology;
      const std::optional<MissingLinks> missing = FindMissingLinks(machine);
      ASSERT_TRUE(missing);
      EXPECT_EQ(missing->hosts.size(), 1u);
      const Topology made = MakeWhole(machine, *missing).value();
      EXPECT_EQ(made.num_nodes(), whole.num_nodes());
      EXPECT_EQ(made.num_links(), whole.num_links());
      const Renumbered ordered = InOrder(made, *missing);
      EXPECT_EQ(FindTranslations(ordered.topology).order(), FindTranslations(whole).order());
      EXPECT_EQ(ordered.topology.node(ordered.node.back()), made.spec().nodes.back());
    }
  }
}

TEST(Whole, HostsThatCannotBeLostAreRefused) {
  const Topology machine = Load("leaf-spine:4x4x4");
  EXPECT_EQ(MakeWhole(machine, {.hosts = {HostId(16)}, .lost = {}, .slow = {}}).status().message(),
            "lost host like 16; hosts are 0..15");
  EXPECT_EQ(
      MakeWhole(machine, {.hosts = std::vector(17, HostId(0)), .lost = {}, .slow = {}}).status().message(),
      "17 lost hosts; expected at most 16, as the machine has");
}

TEST(Whole, NothingIsMissingOfAWholeMachine) {
  for (const char* name : {"leaf-spine:4x4x4", "fat-tree:k=8", "torus:4x4"})
    EXPECT_FALSE(FindMissingLinks(Load(name))) << name;
}

TEST(Whole, LinksThatCannotBeMissingAreRefused) {
  const Topology ring = Load("ring:4");
  EXPECT_EQ(MakeWhole(ring, {.hosts = {}, .lost = {}, .slow = {{LinkId(8), 1}}}).status().message(),
            "slow link 8; links are 0..7");
  const int64_t there = ring.link(LinkId(2)).bandwidth_bytes_per_s;
  const std::string full = std::to_string(there);
  EXPECT_EQ(MakeWhole(ring, {.hosts = {}, .lost = {}, .slow = {{LinkId(2), there}}}).status().message(),
            "slow link 2: " + full + " B/s in the whole machine; expected more than " + full);
  Link lost = ring.link(LinkId(0));
  lost.to = NodeId(9);
  EXPECT_FALSE(MakeWhole(ring, {.hosts = {}, .lost = {lost}, .slow = {}}).ok());
}

}  // namespace
}  // namespace xccl
