#include "synth/forest/roomy.h"

#include <gtest/gtest.h>

#include "synth/common/test_machines.h"

namespace xccl {
namespace {

constexpr int64_t kGigabyte = 1'000'000'000;

std::optional<Topology> Roomy(const Topology& topology, CollectiveKind kind) {
  const Collective collective =
      Collective::Create(testing::SpecOf(kind, AllRanks(topology.num_ranks()))).value();
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  request.size_bytes = 64 << 20;
  return forest::RoomyMachine(request, 0.75);
}

// The part of their bandwidth that links with so much keep.
double Kept(const Topology& before, const std::optional<Topology>& after, int64_t bandwidth) {
  if (!after) return 1;
  for (int32_t l = 0; l < before.num_links(); ++l)
    if (before.link(LinkId(l)).bandwidth_bytes_per_s == bandwidth)
      return static_cast<double>(after->link(LinkId(l)).bandwidth_bytes_per_s) /
             static_cast<double>(bandwidth);
  return 0;
}

// What enters a GPU takes (n - 1) / n bytes at 10 GB/s, half of all bytes cross at 20 and more.
TEST(RoomyMachine, RelievesTheFabricWherePortsBind) {
  for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter}) {
    const Topology leaves = testing::MakeLeaves(4, {20 * kGigabyte, 15 * kGigabyte});
    const std::optional<Topology> roomy = Roomy(leaves, kind);
    EXPECT_EQ(Kept(leaves, roomy, 10 * kGigabyte), 1);
    EXPECT_EQ(Kept(leaves, roomy, 15 * kGigabyte), 0.75);
    EXPECT_EQ(Kept(leaves, roomy, 20 * kGigabyte), 0.75);
  }
}

TEST(RoomyMachine, RelievesPortsWhereTheFabricBinds) {
  const Topology leaves = testing::MakeLeaves(4, {2 * kGigabyte, 1 * kGigabyte});
  for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kAllreduce}) {
    const std::optional<Topology> roomy = Roomy(leaves, kind);
    EXPECT_EQ(Kept(leaves, roomy, 1 * kGigabyte), 1);
    EXPECT_EQ(Kept(leaves, roomy, 2 * kGigabyte), 1);
    EXPECT_EQ(Kept(leaves, roomy, 10 * kGigabyte), 0.75);
  }
}

// Half of all bytes cross at 5.5 GB/s, and 7/8 enter a GPU at 10: what the two spines have together binds.
TEST(RoomyMachine, LinksThatBindTogetherAreNotRelievedOneByOne) {
  const Topology leaves = testing::MakeLeaves(4, {4 * kGigabyte, 3 * kGigabyte / 2});
  const std::optional<Topology> roomy = Roomy(leaves, CollectiveKind::kAllgather);
  EXPECT_EQ(Kept(leaves, roomy, 4 * kGigabyte), 1);
  EXPECT_EQ(Kept(leaves, roomy, 3 * kGigabyte / 2), 1);
}

TEST(RoomyMachine, LinksOfOneKindStayAsTheyAre) {
  for (const Topology& topology : {testing::MakeRing(5), testing::MakeSwitch(4)})
    EXPECT_FALSE(Roomy(topology, CollectiveKind::kAllgather));
}

}  // namespace
}  // namespace xccl
