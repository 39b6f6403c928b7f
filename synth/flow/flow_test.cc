#include "synth/flow/flow.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/shared_data.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/translated.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr CollectiveKind kServed[] = {CollectiveKind::kAlltoall, CollectiveKind::kAlltoallv,
                                      CollectiveKind::kSendrecv, CollectiveKind::kGather,
                                      CollectiveKind::kScatter};

Collective Of(CollectiveKind kind, std::vector<Rank> ranks) {
  return Collective::Create(testing::SpecOf(kind, std::move(ranks))).value();
}

SynthesisLimits Limits(std::optional<int32_t> chunks, std::optional<int32_t> steps) {
  SynthesisLimits limits;
  limits.chunks = chunks;
  limits.steps = steps;
  return limits;
}

StatusOr<Synthesis> Plan(const Topology& topology, const Collective& collective, int64_t size_bytes,
                         SynthesisLimits limits = {}, TimeModel model = TimeModel::kPipelined) {
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  request.size_bytes = size_bytes;
  request.model = model;
  request.limits = limits;
  return FlowEngine().Synthesize(request);
}

TEST(Flow, VerifiesAndKeepsAboveItsBoundOnEveryMachine) {
  for (const testing::Machine& machine : testing::Machines()) {
    for (const std::vector<Rank>& members : testing::MemberLists(machine.topology.num_ranks())) {
      for (const CollectiveKind kind : kServed) {
        for (const auto& [model, size] :
             {std::pair(TimeModel::kPipelined, int64_t{0}), std::pair(TimeModel::kBlocking, int64_t{1000}),
              std::pair(TimeModel::kPipelined, int64_t{1} << 20)}) {
          SCOPED_TRACE(machine.name + " " + std::string(ToString(kind)) + " " + std::to_string(size));
          const Collective collective = Of(kind, members);
          const StatusOr<Synthesis> made = Plan(machine.topology, collective, size, {}, model);
          ASSERT_TRUE(made.ok()) << made.status().message();
          ASSERT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, machine.topology)).message(),
                    "");
          const Bound bound = LowerBound(machine.topology, collective, size, model).value();
          const int64_t time_ps = Simulate(made->schedule, made->collective, machine.topology,
                                           {.size_bytes = size, .model = model})
                                      .time_ps;
          EXPECT_GE(time_ps, bound.bound_ps);
          if (made->simulation) {
            EXPECT_EQ(time_ps, made->simulation->time_ps);
          }
        }
      }
    }
  }
}

struct Row {
  const char* machine;
  double ratio;  // time of an alltoall of 1 GiB ÷ bound, at most
};

class FlowOn : public ::testing::TestWithParam<Row> {};

TEST_P(FlowOn, AlltoallComesNearItsBound) {
  StatusOr<Topology> topology = LoadTopology(GetParam().machine);
  if (std::string_view(GetParam().machine).ends_with(".xml")) {
    const std::optional<std::string> path = SharedData(std::string("data/graphs/") + GetParam().machine);
    if (!path) GTEST_SKIP() << "../shared is not there";
    topology = LoadTopology(*path);
  }
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  const Collective collective = Of(CollectiveKind::kAlltoall, AllRanks(topology->num_ranks()));
  const StatusOr<Synthesis> made = Plan(*topology, collective, kGiB);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, *topology)).message(), "");
  const Bound bound = LowerBound(*topology, collective, kGiB, TimeModel::kPipelined).value();
  EXPECT_LE(static_cast<double>(made->simulation->time_ps),
            GetParam().ratio * static_cast<double>(bound.bound_ps));
}

INSTANTIATE_TEST_SUITE_P(Table, FlowOn,
                         ::testing::Values(Row{"ring:8", 1.002}, Row{"torus:4x4", 1.002},
                                           Row{"torus:8x8", 1.002}, Row{"mesh:4x4", 1.002},
                                           Row{"mesh:5x6", 1.002}, Row{"hypercube:5", 1.005},
                                           Row{"nvswitch:8", 1.002}, Row{"full-mesh:8", 1.002},
                                           Row{"rail-4", 1.005}, Row{"dgx1.xml", 1.002},
                                           Row{"a100x2.xml", 1.002}, Row{"mi250x1.xml", 1.002},
                                           Row{"2xtorus4x4_slow4.xml", 1.002}),
                         [](const auto& info) {
                           std::string name = info.param.machine;
                           std::ranges::replace_if(
                               name, [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

// 256 ranks: the plan is written for one.
TEST(Flow, StaysCompressedOnLargeMachines) {
  const Topology topology = LoadTopology("torus:16x16").value();
  const Collective collective = Of(CollectiveKind::kAlltoall, AllRanks(topology.num_ranks()));
  const StatusOr<Synthesis> made = Plan(topology, collective, kGiB);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_FALSE(made->schedule.symmetry.empty());
  EXPECT_LE(made->schedule.size(), 4096);
  EXPECT_EQ(ExpandedTransfers(made->schedule, made->collective, topology), made->schedule.size() * 256);
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)).message(), "");
}

// All bytes from one rank to one other: as many routes as there are disjoint ones.
TEST(Flow, OneHeavyPairUsesAllRoutes) {
  const Topology topology = LoadTopology("torus:4x4").value();
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kSendrecv;
  spec.ranks = AllRanks(topology.num_ranks());
  spec.pairs = {{Rank(0), Rank(5)}};
  const Collective collective = Collective::Create(spec).value();
  const StatusOr<Synthesis> made = Plan(topology, collective, kGiB);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->collective.num_chunks() % 4, 0) << made->collective.num_chunks();
  const Bound bound = LowerBound(topology, collective, kGiB, TimeModel::kPipelined).value();
  EXPECT_LE(static_cast<double>(made->simulation->time_ps), 1.002 * static_cast<double>(bound.bound_ps));
}

TEST(Flow, KeepsToTheNumberOfChunks) {
  const Topology topology = LoadTopology("mesh:3x3").value();
  const Collective collective = Of(CollectiveKind::kAlltoall, AllRanks(topology.num_ranks()));
  for (const int32_t chunks : {1, 2, 5}) {
    const StatusOr<Synthesis> made = Plan(topology, collective, kGiB, Limits(chunks, std::nullopt));
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_TRUE(made->collective == collective.WithChunks(chunks));
    EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)).message(), "");
  }
}

TEST(Flow, TakesFewerWavesWhereStepsAreFew) {
  const Topology topology = LoadTopology("mesh:5x6").value();
  const Collective collective = Of(CollectiveKind::kAlltoall, AllRanks(topology.num_ranks()));
  for (const auto& [steps, taken] : {std::pair(10, 10), std::pair(20, 20), std::pair(35, 30)}) {
    const StatusOr<Synthesis> made = Plan(topology, collective, kGiB, Limits(std::nullopt, steps));
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(made->schedule.num_steps(), taken);
  }
}

TEST(Flow, StopsInTimeWithOneRoundOfPrices) {
  const Topology topology = LoadTopology("mesh:5x6").value();
  SynthesisLimits limits;
  limits.deadline = Deadline(0.0);
  const Collective collective = Of(CollectiveKind::kAlltoall, AllRanks(topology.num_ranks()));
  const StatusOr<Synthesis> made = Plan(topology, collective, kGiB, limits);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)).message(), "");
}

// Work counts the ranks that send, not all ranks.
TEST(Flow, WorkCountsSources) {
  const Topology mesh = LoadTopology("mesh:4x5").value();  // 31 cables
  const auto work = [&](const Collective& collective) {
    SynthesisRequest request;
    request.topology = &mesh;
    request.collective = &collective;
    return FlowEngine().Offered(request)->work;
  };
  // In moves: 200 rounds that look at 62 links and turn a heap of 6 levels, at 150 operations a move.
  const int64_t of_a_source = 2 * 200 * 62 * 6 / 150;
  EXPECT_EQ(work(Of(CollectiveKind::kScatter, AllRanks(mesh.num_ranks()))), of_a_source);
  EXPECT_EQ(work(Of(CollectiveKind::kGather, AllRanks(mesh.num_ranks()))), 20 * of_a_source);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kSendrecv;
  spec.ranks = AllRanks(mesh.num_ranks());
  spec.pairs = {{Rank(3), Rank(5)}, {Rank(7), Rank(1)}, {Rank(3), Rank(6)}};
  EXPECT_EQ(work(Collective::Create(spec).value()), 2 * of_a_source);
}

// The search for groups' plans asks for many of them: long segments are enough to choose by.
TEST(Flow, RoughRequestsAreTimedInLongerSegments) {
  const Topology topology = LoadTopology("dgx1").value();
  const Collective alltoall = Of(CollectiveKind::kAlltoall, {Rank(0), Rank(1)});
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &alltoall;
  request.size_bytes = kGiB;
  const Synthesis exact = FlowEngine().Synthesize(request).value();
  request.rough = true;
  const Synthesis rough = FlowEngine().Synthesize(request).value();
  EXPECT_EQ(rough.schedule, exact.schedule);
  EXPECT_GT(rough.simulation->segment_bytes, exact.simulation->segment_bytes);
  EXPECT_GE(rough.simulation->time_ps, exact.simulation->time_ps);
  EXPECT_LE(rough.simulation->time_ps, exact.simulation->time_ps + exact.simulation->time_ps / 50);
}

TEST(Flow, Refusals) {
  const Topology topology = LoadTopology("ring:8").value();
  const Collective alltoall = Of(CollectiveKind::kAlltoall, AllRanks(topology.num_ranks()));
  EXPECT_EQ(Plan(topology, alltoall, kGiB, Limits(std::nullopt, 3)).status().message(),
            "flow: no alltoall on 8 ranks in 3 steps: rank 4 is 4 links from rank 0; hint: --steps=4");
  EXPECT_EQ(
      Plan(topology, Of(CollectiveKind::kAllgather, AllRanks(topology.num_ranks())), kGiB).status().message(),
      "flow: does not serve allgather; it serves alltoall, alltoallv, sendrecv, gather, scatter; hint: "
      "--engine=auto");
  EXPECT_EQ(Plan(topology, alltoall, kGiB, Limits(1 << 20, std::nullopt)).status().message(),
            "flow: 1048576 chunks a part of 64 parts; at most 4194304 in all");
  const Topology large = LoadTopology("mesh:24x25").value();
  EXPECT_EQ(Plan(large, Of(CollectiveKind::kAlltoall, AllRanks(large.num_ranks())), kGiB).status().message(),
            "flow: 300 sources x 1151 links that differ; at most 60000 together; hint: --engine=greedy");
  const Topology round = LoadTopology("ring:2051").value();
  EXPECT_EQ(Plan(round, Of(CollectiveKind::kScatter, AllRanks(round.num_ranks())), kGiB).status().message(),
            "flow: its parts cross 1051650 links at least; at most 1048576; hint: --engine=greedy");
}

}  // namespace
}  // namespace xccl
