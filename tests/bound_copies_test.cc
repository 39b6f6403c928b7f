// Bounds from copies, by hand.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ir/bounds/bound.h"
#include "ir/testing/graphs.h"
#include "tests/testing/topologies.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

using testing::MakeCollective;
using testing::MakeGraph;

Bound BoundOn(const Topology& topology, CollectiveKind kind, int64_t bytes) {
  const auto root = IsRooted(kind) ? std::optional<Rank>(Rank(0)) : std::nullopt;
  return LowerBound(topology, MakeCollective(kind, topology.num_ranks(), root), bytes, TimeModel::kPipelined)
      .value();
}

// A port of 1 GB/s each, and 1000 ns from GPU to GPU.
TEST(CopiesBound, ASwitchIsPassedOnceForEachRankAtTheEnd) {
  const Topology machine = LoadTopology("nvswitch:4@bandwidth=1GB/s,latency=500ns").value();
  struct Case {
    CollectiveKind kind;
    int64_t bytes;
    int64_t bound_ps;
    std::string why;
  };
  for (const Case& c : std::vector<Case>{
           {CollectiveKind::kBroadcast, 100, 1'300'000, "nobody has the time to pass it on"},
           {CollectiveKind::kReduce, 100, 1'300'000, "the mirror image"},
           {CollectiveKind::kAllreduce, 100, 1'300'000, "what one rank gets"},
           {CollectiveKind::kBroadcast, 3000, 4'666'666,
            "a third of 1000 bytes goes to all in the last 1000 ns before the last 1000 ns"},
           {CollectiveKind::kReduce, 3000, 4'666'666, "the mirror image"},
       }) {
    const Bound bound = BoundOn(machine, c.kind, c.bytes);
    EXPECT_EQ(bound.bound_ps, c.bound_ps) << ToString(c.kind) << " " << c.bytes << ": " << c.why;
    EXPECT_EQ(bound.kind, BoundKind::kFlowOverTime);
  }
}

// Ranks 0 and 1 are on switch 4, ranks 2 and 3 on switch 5; one link from switch to switch.
TEST(CopiesBound, ALinkBetweenGroupsIsPassedOnceForEachRankAtTheEnd) {
  std::vector<testing::Edge> links = {{4, 5, 1, 100}, {5, 4, 1, 100}};
  for (int32_t gpu = 0; gpu < 4; ++gpu) {
    links.push_back({gpu, 4 + gpu / 2, 8, 100});
    links.push_back({4 + gpu / 2, gpu, 8, 100});
  }
  const Topology machine = MakeGraph("pairs", 4, 2, links);
  // 48 bytes each from 0 and 1. They pass the link from 100 ns on, and are then 200 ns from one of 2 and 3,
  // or 400 ns from both: T - 100 - 200 is 192, so that each passes twice.
  EXPECT_EQ(BoundOn(machine, CollectiveKind::kAllgather, 192).bound_ps, 492'000);
  EXPECT_EQ(BoundOn(machine, CollectiveKind::kReduceScatter, 192).bound_ps, 492'000);
  // 512 each: those of the last 200 ns twice, T = 100 + 400 + 1024 - 200 ÷ 2.
  EXPECT_EQ(BoundOn(machine, CollectiveKind::kAllgather, 2048).bound_ps, 1'424'000);
}

// Rank 1 has a link of its own, and no way on: what the root could send it does not help ranks 2 and 3.
TEST(CopiesBound, FarRanksCountByThemselves) {
  std::vector<testing::Edge> links = {
      {0, 1, 1, 100}, {0, 4, 1, 500}, {4, 2, 1, 500}, {4, 3, 1, 500}, {2, 4, 1, 500}};
  EXPECT_EQ(BoundOn(MakeGraph("far", 4, 1, links), CollectiveKind::kBroadcast, 100).bound_ps, 1'200'000);
  for (testing::Edge& link : links) std::swap(link.from, link.to);
  EXPECT_EQ(BoundOn(MakeGraph("mirror", 4, 1, links), CollectiveKind::kReduce, 100).bound_ps, 1'200'000);
}

// A switch that copies makes one message enough.
TEST(CopiesBound, ASwitchThatMulticastsCopies) {
  const Topology machine = LoadTopology("dgx-h100").value();
  const Bound one = BoundOn(machine, CollectiveKind::kBroadcast, 1 << 20);
  EXPECT_NEAR(static_cast<double>(one.bound_ps), one.bandwidth_ps + static_cast<double>(one.latency_ps), 2);
}

}  // namespace
}  // namespace xccl
