// Plans verify on rings and tori of all kinds of sides, carry what the bound says on each link, and come near
// the bound.
#include "synth/textbook/torus_alltoall.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/bounds/bound.h"
#include "ir/collective.h"
#include "ir/simulate/simulate.h"
#include "ir/translated.h"
#include "ir/verify/verify_schedule.h"
#include "topologies/load/load.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

Collective AlltoallOn(const Topology& topology) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAlltoall;
  spec.ranks = AllRanks(topology.num_ranks());
  return *Collective::Create(std::move(spec));
}

StatusOr<Synthesis> PlanOn(const Topology& topology, const Collective& collective, int64_t size_bytes,
                           SynthesisLimits limits = {}) {
  SynthesisRequest request{.topology = &topology, .collective = &collective, .size_bytes = size_bytes};
  request.limits = limits;
  return TorusAlltoallEngine().Synthesize(request);
}

double RatioOf(const std::string& machine, int64_t size_bytes) {
  const Topology topology = *LoadTopology(machine);
  const Collective collective = AlltoallOn(topology);
  const StatusOr<Synthesis> made = PlanOn(topology, collective, size_bytes);
  EXPECT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)), OkStatus());
  const StatusOr<Bound> bound = LowerBound(topology, collective, size_bytes, TimeModel::kPipelined);
  const int64_t time_ps =
      Simulate(made->schedule, made->collective, topology, {.size_bytes = size_bytes}).time_ps;
  EXPECT_GE(time_ps, bound->bound_ps);
  return static_cast<double>(time_ps) / static_cast<double>(bound->bound_ps);
}

TEST(TorusAlltoall, PlansOfAllSidesVerify) {
  for (const char* machine :
       {"ring:3", "ring:4", "ring:7", "torus:3x3", "torus:4x3", "torus:3x4", "torus:4x4", "torus:6x5",
        "torus:8x8", "torus:3x4x5", "torus:4x4x4", "torus:4x6x3", "torus:3x3x3x3", "torus:4x3x4x3",
        "hypercube:3", "hypercube:5"}) {
    const Topology topology = *LoadTopology(machine);
    const Collective collective = AlltoallOn(topology);
    for (const int32_t chunks : {1, 3}) {
      SCOPED_TRACE(fmt::format("{}, {} chunks", machine, chunks));
      const StatusOr<Synthesis> made = PlanOn(topology, collective, 1 << 20, {.chunks = chunks});
      ASSERT_TRUE(made.ok()) << made.status().message();
      EXPECT_EQ(made->collective.num_chunks(), collective.num_parts() * chunks);
      ASSERT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)), OkStatus());
    }
  }
}

// Every block goes the shorter way round each dimension, and half-way offsets take both, so that no link
// carries more.
TEST(TorusAlltoall, LinksCarryWhatTheBoundSays) {
  const std::vector<std::pair<std::string, int32_t>> machines = {
      {"torus:8x8", 8}, {"torus:6x4", 6}, {"torus:4x8x4", 8}, {"torus:5x5", 5}, {"torus:4x4x4x4", 4}};
  for (const auto& [machine, side] : machines) {
    SCOPED_TRACE(machine);
    const Topology topology = *LoadTopology(machine);
    const Collective collective = AlltoallOn(topology);
    const StatusOr<Synthesis> made = PlanOn(topology, collective, 1 << 20);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const StatusOr<Schedule> plain = Expand(made->schedule, made->collective, topology);
    ASSERT_TRUE(plain.ok());
    std::vector<int64_t> blocks(static_cast<size_t>(topology.num_links()), 0);
    for (int64_t t = 0; t < plain->size(); ++t)
      for (const LinkId l : plain->paths[plain->path[t]]) blocks[l.index()] += plain->count[t];
    const int32_t half = side / 2, hops = half * (side - half);  // of a ring's blocks, both ways
    EXPECT_EQ(*std::ranges::max_element(blocks), (topology.num_ranks() / side * hops + 1) / 2);
  }
}

// Two cables between neighbours, one of them faster.
TEST(TorusAlltoall, ParallelLinksShareTheBlocks) {
  std::string xml = "<topology name=\"cables\">\n  <gpu count=\"16\"/>\n";
  for (int32_t r = 0; r < 16; ++r) {
    for (const int32_t next : {r / 4 * 4 + (r + 1) % 4, (r + 4) % 16})
      for (const int32_t gb : {10, 30})
        xml += fmt::format("  <link from=\"{}\" to=\"{}\" bandwidth=\"{}GB/s\"/>\n", r, next, gb);
  }
  const Topology topology = ReadNativeXml(xml + "</topology>", "cables").value();
  const Collective collective = AlltoallOn(topology);
  const StatusOr<Synthesis> made = PlanOn(topology, collective, 1 << 28);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)), OkStatus());
  const StatusOr<Bound> bound = LowerBound(topology, collective, 1 << 28, TimeModel::kPipelined);
  const int64_t time_ps =
      Simulate(made->schedule, made->collective, topology, {.size_bytes = 1 << 28}).time_ps;
  EXPECT_LE(static_cast<double>(time_ps), 2 * static_cast<double>(bound->bound_ps));
}

// A plan of a long ring has about four transfers a rank, and not the square of the ranks.
TEST(TorusAlltoall, PlansOfLongRingsAreShort) {
  const Topology topology = *LoadTopology("ring:2048");
  const StatusOr<Synthesis> made = PlanOn(topology, AlltoallOn(topology), int64_t{1} << 28);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_LE(made->schedule.size(), 4 * topology.num_ranks());
}

TEST(TorusAlltoall, ComesNearTheBound) {
  EXPECT_LE(RatioOf("torus:8x8x8", int64_t{1} << 28), 1.09);
  EXPECT_LE(RatioOf("torus:16x16", int64_t{1} << 28), 1.1);
}

// The plan of 4,096 ranks is not written out.
TEST(TorusAlltoall, PlansOfManyRanksAreShort) {
  const Topology topology = *LoadTopology("torus:16x16x16");
  const StatusOr<Synthesis> made = PlanOn(topology, AlltoallOn(topology), int64_t{1} << 28);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_FALSE(made->schedule.symmetry.empty());
  EXPECT_LE(made->schedule.size(), 16 * topology.num_ranks());
}

TEST(TorusAlltoall, SaysWhyNot) {
  const auto refusal = [](const char* machine) {
    const Topology topology = *LoadTopology(machine);
    return PlanOn(topology, AlltoallOn(topology), 1 << 20).status().message();
  };
  const std::string no_torus =
      "torus-alltoall: the links form no ring or torus, or some ranks take no part; expected one that all "
      "ranks form, in "
      "order";
  EXPECT_EQ(refusal("mesh:4x4"), no_torus);
  EXPECT_EQ(refusal("nvswitch:8"), no_torus);
}

}  // namespace
}  // namespace xccl
