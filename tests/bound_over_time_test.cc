// Flows over time as bounds: by hand, beside every set of ranks, and what they do not bind.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/graph/flow_over_time.h"
#include "base/units.h"
#include "ir/bounds/bound.h"
#include "ir/sizes.h"
#include "ir/testing/graphs.h"
#include "tests/testing/topologies.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

using testing::MakeCollective;
using testing::MakeGraph;

Bound BoundOn(const std::string& topology, CollectiveKind kind, int64_t bytes,
              TimeModel model = TimeModel::kPipelined) {
  const Topology made = LoadTopology(topology).value();
  const auto root = IsRooted(kind) ? std::optional<Rank>(Rank(0)) : std::nullopt;
  return LowerBound(made, MakeCollective(kind, made.num_ranks(), root), bytes, model).value();
}

TEST(FlowOverTimeBound, ByHand) {
  struct Case {
    std::string topology;
    CollectiveKind kind;
    int64_t bytes;
    double bound_ns;
    std::string why;
  };
  const std::vector<Case> cases = {
      {"full-mesh:2@bandwidth=1GB/s,latency=500ns", CollectiveKind::kBroadcast, 1000, 1500,
       "bytes, then alpha"},
      {"full-mesh:2@bandwidth=1GB/s,latency=500ns", CollectiveKind::kAllreduce, 1000, 1500,
       "each to the other"},
      {"full-mesh:3@bandwidth=1GB/s,latency=500ns", CollectiveKind::kBroadcast, 2000, 1750,
       "T - 500 straight on and T - 1000 by the third rank"},
      {"full-mesh:3@bandwidth=1GB/s,latency=500ns", CollectiveKind::kBroadcast, 100, 600,
       "no use of a detour"},
      {"ring:4@bandwidth=1GB/s,latency=500ns", CollectiveKind::kAllgather, 4096, 2036,
       "3072 bytes over two links from 500 on; the farthest 1024, from 1000 on, take less"},
      {"ring:4@bandwidth=1GB/s,latency=500ns", CollectiveKind::kReduceScatter, 64, 1008,
       "the farthest 16 bytes"},
      {"ring:4@bandwidth=1GB/s,latency=500ns", CollectiveKind::kGather, 4096, 2036, "as for allgather"},
      {"nvswitch:4@bandwidth=1GB/s,latency=500ns", CollectiveKind::kAlltoall, 4096, 4072,
       "3072 bytes behind two links"},
  };
  for (const Case& c : cases) {
    const Bound bound = BoundOn(c.topology, c.kind, c.bytes);
    EXPECT_EQ(static_cast<double>(bound.bound_ps) / 1e3, c.bound_ns)
        << c.topology << " " << ToString(c.kind) << ": " << c.why;
    EXPECT_EQ(bound.kind, BoundKind::kFlowOverTime) << c.topology << " " << ToString(c.kind);
  }
}

TEST(FlowOverTimeBound, CountsOverheadWhereItIsSureToBePaid) {
  // 0 -> 1 -> 2 with GPUs: 1000 bytes at 1 GB/s, alpha 100 and overhead 10 ns.
  const Collective broadcast = MakeCollective(CollectiveKind::kBroadcast, 3, Rank(0));
  const Topology line = MakeGraph("line", 3, 0, {{0, 1, 1, 100, 10}, {1, 2, 1, 100, 10}});
  EXPECT_EQ(LowerBound(line, broadcast, 1000, TimeModel::kPipelined).value().bound_ps, 1'210'000);
  EXPECT_EQ(LowerBound(line, broadcast, 1000, TimeModel::kBlocking).value().bound_ps, 1'220'000);
  // 0 -> switch -> 1, the second link at half the rate: the first one's overhead costs nothing.
  const Topology behind = MakeGraph("switch", 2, 1, {{0, 2, 2, 100, 10}, {2, 1, 1, 100, 10}});
  const Collective pair = MakeCollective(CollectiveKind::kBroadcast, 2, Rank(0));
  EXPECT_EQ(LowerBound(behind, pair, 1000, TimeModel::kPipelined).value().bound_ps, 1'200'000);
}

TEST(FlowOverTimeBound, NothingToMoveTakesTheLatency) {
  const Bound bound = BoundOn("ring:4", CollectiveKind::kAllgather, 0);
  EXPECT_EQ(bound.bound_ps, bound.latency_ps);
  EXPECT_EQ(bound.kind, BoundKind::kCut);
}

// Where bytes alone count, the kind stays that of the bandwidth.
TEST(FlowOverTimeBound, LeavesTheKindToALargerBound) {
  const Bound bound = BoundOn("full-mesh:8@latency=0ns", CollectiveKind::kAllreduce, 64 << 20);
  EXPECT_EQ(bound.kind, BoundKind::kCounting);
  EXPECT_EQ(bound.bound_ps, static_cast<int64_t>(std::floor(bound.bandwidth_ps)));
}

// A link is of use for T less the way to it and the way on.
TEST(WindowBound, AddsTheWaitOfLinks) {
  struct Case {
    std::string topology;
    CollectiveKind kind;
    int64_t wait_ps;
  };
  for (const Case& c : std::vector<Case>{{"full-mesh:8", CollectiveKind::kAllreduce, 500'000},
                                         {"mesh:4x4", CollectiveKind::kAllreduce, 500'000},
                                         {"mesh:4x4", CollectiveKind::kAlltoall, 500'000},
                                         {"nvswitch:8", CollectiveKind::kAllreduce, 1'000'000},
                                         {"nvswitch:8", CollectiveKind::kAlltoall, 1'000'000},
                                         {"torus:8x8", CollectiveKind::kAlltoall, 500'000}}) {
    const Bound bound = BoundOn(c.topology, c.kind, 64 << 20);
    EXPECT_EQ(bound.kind, BoundKind::kFlowOverTime) << c.topology << " " << ToString(c.kind);
    EXPECT_NEAR(static_cast<double>(bound.bound_ps), bound.bandwidth_ps + static_cast<double>(c.wait_ps), 2)
        << c.topology << " " << ToString(c.kind);
  }
}

// Two ways of 1 GB/s, of which one takes 2000 ns: of use to 4000 bytes, but not to 1200.
TEST(WindowBound, LeavesOutLinksThatTakeTooLong) {
  const Topology topology =
      MakeGraph("slow", 2, 0, {{0, 1, 1, 100}, {0, 1, 1, 2000}, {1, 0, 1, 100}, {1, 0, 1, 2000}});
  const auto allreduce = MakeCollective(CollectiveKind::kAllreduce, 2);
  EXPECT_EQ(LowerBound(topology, allreduce, 1200, TimeModel::kPipelined).value().bound_ps, 1'300'000);
  EXPECT_EQ(LowerBound(topology, allreduce, 4000, TimeModel::kPipelined).value().bound_ps, 3'050'000);
}

// The search for the worst set of ranks beside all of them.
TEST(FlowOverTimeBound, IsTheWorstOfAllSets) {
  int32_t beyond = 0, cases = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Topology topology = testing::MakeRandomMachine(seed, {.max_ranks = 8, .max_switches = 3});
    const int32_t ranks = topology.num_ranks();
    if (ranks < 2) continue;
    std::vector<CostArc> arcs;
    for (const Link& link : topology.spec().links) {
      const bool starts = topology.IsGpu(link.from) && topology.IsGpu(link.to);
      arcs.push_back({link.from.value, link.to.value, link.bandwidth_bytes_per_s, link.latency_ps,
                      starts ? link.overhead_ps : 0});
    }
    MinCostFlow network(topology.num_nodes(), arcs);
    const std::vector<int32_t> root = {topology.NodeOf(Rank(0)).value};
    for (const CollectiveKind kind : {CollectiveKind::kGather, CollectiveKind::kScatter}) {
      const Collective collective = MakeCollective(kind, ranks, Rank(0));
      for (const int64_t size : {int64_t{1} << 10, int64_t{1} << 20, int64_t{1} << 30}) {
        const Bound bound = LowerBound(topology, collective, size, TimeModel::kPipelined).value();
        const int64_t larger =
            std::max(bound.latency_ps, static_cast<int64_t>(std::floor(bound.bandwidth_ps)));
        const CollectiveSizes sizes(collective, size);
        int64_t worst = larger;
        for (uint32_t set = 1; set < 1u << (ranks - 1); ++set) {
          std::vector<int32_t> others;
          int64_t bytes = 0;
          for (int32_t r = 1; r < ranks; ++r) {
            if ((set >> (r - 1) & 1) == 0) continue;
            others.push_back(topology.NodeOf(Rank(r)).value);
            bytes += sizes.PartBytes(PartId(r));
          }
          const bool gather = kind == CollectiveKind::kGather;
          const TimeQuery query{.sources = gather ? others : root,
                                .sinks = gather ? root : others,
                                .amount = bytes,
                                .times = kPsPerSecond};
          worst = std::max(worst, LeastTime(network, query, worst).value_or(0));
        }
        ++cases;
        beyond += worst > larger;
        EXPECT_NEAR(static_cast<double>(bound.bound_ps), static_cast<double>(worst),
                    1 + 1e-9 * static_cast<double>(worst))
            << seed << " " << ToString(kind) << " " << size;
      }
    }
  }
  EXPECT_GT(beyond, cases / 2);
}

}  // namespace
}  // namespace xccl
