// Forest's plans on machines where slower links hold faster ones.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/testing/graphs.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/lag.h"
#include "synth/engines.h"
#include "synth/forest/forest.h"
#include "tests/testing/machine_kinds.h"
#include "tests/testing/topologies.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
                                     CollectiveKind::kBroadcast, CollectiveKind::kReduce,
                                     CollectiveKind::kAllreduce};

Collective Of(CollectiveKind kind, const Topology& topology) {
  const std::optional<Rank> root = IsRooted(kind) ? std::optional(Rank(0)) : std::nullopt;
  return testing::MakeCollective(kind, topology.num_ranks(), root);
}

TEST(WithLag, ProvesRightOnRandomMachines) {
  int32_t later = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Topology topology = testing::MakeRandomMachine(seed);
    for (const CollectiveKind kind : kKinds) {
      SCOPED_TRACE(fmt::format("{}, seed {}", ToString(kind), seed));
      const Collective collective = Of(kind, topology);
      const SynthesisRequest request{
          .topology = &topology, .collective = &collective, .size_bytes = int64_t{16} << 20};
      const StatusOr<Synthesis> plan = ForestEngine().Synthesize(request);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      EXPECT_EQ(WithLag(plan->schedule, topology, 0), plan->schedule);
      for (const int32_t lag : {1, 7, 50}) {
        const Schedule late = WithLag(plan->schedule, topology, lag);
        EXPECT_EQ(ToStatus(VerifySchedule(late, plan->collective, topology)).message(), "");
        later += late.num_steps() > plan->schedule.num_steps() ? 1 : 0;
      }
    }
  }
  EXPECT_GT(later, 100);
}

// gpu 0 -> switch -> gpu 1 -> switch -> gpu 2, the first link slow; and 0 -> 2 directly.
TEST(WithLag, WhatDependsOnHeldLinksComesLater) {
  TopologySpec spec;
  spec.name = "held";
  for (const char* id : {"0", "1", "2", "s", "t"}) spec.nodes.emplace_back().id = id;
  spec.nodes[3].kind = spec.nodes[4].kind = NodeKind::kSwitch;
  const auto link = [&](int32_t from, int32_t to, int64_t gb_per_s) {
    spec.links.push_back({.from = NodeId(from),
                          .to = NodeId(to),
                          .bandwidth_bytes_per_s = gb_per_s * 1'000'000'000,
                          .latency_ps = 1});
    return LinkId(std::ssize(spec.links) - 1);
  };
  const std::vector<LinkId> held = {link(0, 3, 10), link(3, 1, 40)}, free = {link(1, 4, 40), link(4, 2, 40)},
                            direct = {link(0, 2, 40)};
  const Topology topology = Topology::Create(std::move(spec)).value();
  Schedule schedule;
  schedule.num_chunks = 3;
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), held, TransferOp::kCopy, 0);
  schedule.Add(ChunkId(2), 1, Rank(0), Rank(2), direct, TransferOp::kCopy, 0);
  schedule.Add(ChunkId(0), 1, Rank(1), Rank(2), free, TransferOp::kCopy, 1);
  schedule.Add(ChunkId(1), 1, Rank(0), Rank(2), direct, TransferOp::kCopy, 1);
  schedule.Add(ChunkId(1), 1, Rank(0), Rank(1), held, TransferOp::kCopy, 2);
  const Schedule late = WithLag(schedule, topology, 2);
  std::vector<std::pair<int32_t, int32_t>> steps;  // pairs (chunk, step)
  for (int64_t t = 0; t < late.size(); ++t) steps.emplace_back(late.first[t].value, late.step[t]);
  // Steps 0 and 1 stay; what was in 0, 1 and 2 on held links, or behind them, is in 2, 3 and 4.
  EXPECT_EQ(steps, (std::vector<std::pair<int32_t, int32_t>>{{2, 0}, {1, 1}, {0, 2}, {0, 3}, {1, 4}}));
}

// A cable without latency to a slow NIC and back costs nothing where packings have no price for it.
TEST(Forest, TakesNoDetourToASlowerNeighbourAndBack) {
  const Topology topology = ReadNativeXml(R"(<topology name="detour">
    <gpu count="3"/><switch id="p" count="2"/><nic id="n"/>
    <link from="0" to="p1" bandwidth="10GB/s" latency="300ns"/>
    <link from="1" to="p0" bandwidth="25GB/s"/>
    <link from="2" to="p0" bandwidth="20GB/s"/>
    <link from="p0" to="p1" bandwidth="16GB/s" latency="300ns"/>
    <link from="n" to="p0" bandwidth="5GB/s"/>
    <link from="2" to="0" bandwidth="50GB/s" latency="500ns"/>
    <link from="0" to="1" bandwidth="50GB/s" latency="700ns"/></topology>)",
                                          "detour.xml")
                                .value();
  for (const CollectiveKind kind : kKinds)
    for (const int64_t bytes : {65'536, 200'003, 1 << 20, 22'000'000}) {
      SCOPED_TRACE(fmt::format("{} of {} bytes", ToString(kind), bytes));
      const Collective collective = Of(kind, topology);
      const SynthesisRequest request{.topology = &topology, .collective = &collective, .size_bytes = bytes};
      const StatusOr<Synthesis> plan = ForestEngine().Synthesize(request);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      EXPECT_EQ(ToStatus(VerifySchedule(plan->schedule, plan->collective, topology)).message(), "");
    }
}

// On a two-socket PCIe tree.
double Ratio(const Engine& engine, CollectiveKind kind, uint64_t seed, std::vector<std::string> passed_over) {
  const Topology topology = testing::MakeMachineOfKind(3, seed, 64);
  const Collective collective = Of(kind, topology);
  const int64_t bytes = int64_t{64} << 20;
  const Bound bound = LowerBound(topology, collective, bytes, TimeModel::kPipelined).value();
  SynthesisRequest request{.topology = &topology, .collective = &collective, .size_bytes = bytes};
  request.passed_over = std::move(passed_over);
  const StatusOr<Synthesis> plan = engine.Synthesize(request);
  EXPECT_TRUE(plan.ok());
  return static_cast<double>(plan->simulation->time_ps) / static_cast<double>(bound.bound_ps);
}

// 1.295 where packings do not weigh how long links are held.
TEST(Forest, WeighsHeldLinks) { EXPECT_LT(Ratio(ForestEngine(), CollectiveKind::kReduce, 724953, {}), 1.02); }

TEST(Auto, LetsHeldTransfersComeLater) {
  const double prompt = Ratio(DefaultEngine(), CollectiveKind::kAllreduce, 724993, {"delayed"});
  EXPECT_LT(Ratio(DefaultEngine(), CollectiveKind::kAllreduce, 724993, {}), 0.95 * prompt);
}

}  // namespace
}  // namespace xccl
