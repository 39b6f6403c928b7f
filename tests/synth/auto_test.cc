#include "synth/portfolio/auto.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ir/analysis/bitwise_same.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/synthesizer.h"
#include "synth/common/test_machines.h"
#include "synth/engines.h"

namespace xccl {
namespace {

using testing::Machine;
using testing::MakeDigraph;
using testing::MakeFullMesh;
using testing::MakeGraph;
using testing::MakeGrid;
using testing::MakeHypercube;
using testing::MakeRing;
using testing::SpecOf;

SynthesisRequest RequestFor(const Topology& topology, const Collective& collective) {
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  return request;
}

TEST(Auto, HasAPlanForEveryCollective) {
  std::vector<Machine> machines;
  machines.push_back({"one rank", MakeFullMesh(1)});
  machines.push_back({"two ranks", MakeFullMesh(2)});
  machines.push_back({"ring", MakeRing(5)});
  machines.push_back({"mesh", MakeGrid({2, 3}, false)});
  machines.push_back({"switch", testing::MakeSwitch(7)});
  machines.push_back({"dgx1", testing::MakeDgx1()});
  machines.push_back({"cluster", testing::MakeCluster(2, 3)});
  machines.push_back({"star", MakeGraph(5, {{0, 1}, {0, 2}, {0, 3}, {0, 4}})});
  machines.push_back({"one-way ring with a chord", MakeDigraph(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 2}})});
  int64_t small = 0;
  for (const Machine& machine : machines) {
    const std::vector<std::vector<Rank>> lists = testing::MemberLists(machine.topology.num_ranks());
    for (CollectiveKind kind : AllNamedCollectives()) {
      for (const std::vector<Rank>& ranks : lists) {
        const Collective collective = *Collective::Create(SpecOf(kind, ranks));
        SynthesisRequest request = RequestFor(machine.topology, collective);
        request.limits.work_units = 5'000;
        request.size_bytes = small++ % 2 == 0 ? 4096 : 64 << 20;
        const std::string where = fmt::format("{}, {} on {} ranks, {} bytes", machine.name, collective.name(),
                                              ranks.size(), request.size_bytes);
        const StatusOr<Synthesis> synthesis = DefaultEngine().Synthesize(request);
        ASSERT_TRUE(synthesis.ok()) << where << ": " << synthesis.status().message();
        EXPECT_EQ(ToStatus(VerifySchedule(synthesis->schedule, synthesis->collective, machine.topology)),
                  OkStatus())
            << where << " by " << synthesis->engine;
        EXPECT_TRUE(IsBitwiseSame(synthesis->schedule, synthesis->collective, machine.topology)) << where;
        EXPECT_TRUE(synthesis->note.empty() || synthesis->note == "nothing to move" ||
                    synthesis->note.starts_with("fastest of ") ||
                    synthesis->note.find(" % faster") != std::string::npos ||
                    synthesis->note.ends_with("the other ranks carry nothing"))
            << where << ": " << synthesis->note;
      }
    }
  }
}

TEST(Auto, StopsAtTheBoundAndSaysSo) {
  struct Case {
    std::string name;
    Topology topology;
    CollectiveKind kind;
    std::string engine;
  };
  const Case cases[] = {
      {"full mesh", MakeFullMesh(8), CollectiveKind::kAlltoall, "direct"},
      {"hypercube", MakeHypercube(1), CollectiveKind::kAllgather, "ring"},
  };
  for (const Case& c : cases) {
    const std::vector<Rank> ranks = AllRanks(c.topology.num_ranks());
    const Collective collective = *Collective::Create(SpecOf(c.kind, ranks));
    SynthesisRequest request = RequestFor(c.topology, collective);
    const Synthesis made = *DefaultEngine().Synthesize(request);
    const Bound bound = *LowerBound(c.topology, collective, request.size_bytes, request.model);
    const Simulation simulation =
        Simulate(made.schedule, made.collective, c.topology, {.size_bytes = request.size_bytes});
    EXPECT_LE(static_cast<double>(simulation.time_ps), 1.002 * static_cast<double>(bound.bound_ps)) << c.name;
    EXPECT_EQ(made.exact, simulation.time_ps <= bound.bound_ps + 1) << c.name;
  }
}

// Checks which engine makes the plan, where bfb, forest and flow are asked first or left out.
TEST(Auto, AsksTheEnginesThatComeNearTheBound) {
  struct Case {
    std::string name;
    Topology topology;
    CollectiveKind kind;
    int64_t size_bytes;
    std::optional<int32_t> chunks;
    std::string engine;
  };
  constexpr int64_t kGiB = int64_t{1} << 30;
  for (const Case& c : std::vector<Case>{
           // Every rank receives everything on shortest paths, and links are evenly loaded.
           {"bfb on a torus", MakeGrid({4, 4}, true), CollectiveKind::kAllgather, kGiB, {}, "bfb"},
           {"corners starve without whole trees",
            MakeGrid({5, 5}, false),
            CollectiveKind::kAllreduce,
            kGiB,
            {},
            "forest"},
           {"a broadcast by disjoint trees",
            MakeGrid({6, 6}, true),
            CollectiveKind::kBroadcast,
            kGiB,
            {},
            "forest"},
           {"a formula in shorter chunks",
            MakeGrid({4, 5}, false),
            CollectiveKind::kAlltoall,
            kGiB,
            {},
            "2d-mesh"},
           {"one source on a large mesh",
            MakeGrid({16, 16}, false),
            CollectiveKind::kScatter,
            kGiB,
            {},
            "flow"},
       }) {
    const std::vector<Rank> ranks = AllRanks(c.topology.num_ranks());
    const Collective collective = *Collective::Create(SpecOf(c.kind, ranks));
    SynthesisRequest request = RequestFor(c.topology, collective);
    request.size_bytes = c.size_bytes;
    request.limits.chunks = c.chunks;
    const StatusOr<Synthesis> made = DefaultEngine().Synthesize(request);
    ASSERT_TRUE(made.ok()) << c.name << ": " << made.status().message();
    EXPECT_EQ(made->engine, c.engine) << c.name << ": " << made->note;
  }
}

TEST(Auto, IsDeterministic) {
  const Topology topology = MakeGrid({4, 4}, true);
  const std::vector<Rank> ranks = AllRanks(16);
  const Collective collective = *Collective::Create(SpecOf(CollectiveKind::kAllreduce, ranks));
  const SynthesisRequest request = RequestFor(topology, collective);
  const Synthesis first = *DefaultEngine().Synthesize(request), second = *DefaultEngine().Synthesize(request);
  EXPECT_EQ(first.schedule, second.schedule);
  EXPECT_EQ(first.note, second.note);
}

// One chunk that moves as a whole takes three times its time on a link, and three latencies.
TEST(Auto, ShortensChunksSoThatStepsOverlap) {
  const Topology topology = MakeHypercube(3);
  const std::vector<Rank> ranks = AllRanks(8);
  const Collective collective = *Collective::Create(SpecOf(CollectiveKind::kAllreduce, ranks));
  SynthesisRequest request = RequestFor(topology, collective);
  request.size_bytes = 2816;  // too little for stripes
  const Synthesis made = *DefaultEngine().Synthesize(request);
  const Synthesis whole = *FindEngine("recursive-doubling").value()->Synthesize(request);
  const auto time_ps = [&](const Synthesis& plan) {
    return static_cast<double>(
        Simulate(plan.schedule, plan.collective, topology, {.size_bytes = request.size_bytes}).time_ps);
  };
  EXPECT_LE(time_ps(made), 0.9 * time_ps(whole));
  EXPECT_GT(made.collective.num_chunks(), whole.collective.num_chunks());
  request.limits.chunks = 1;
  EXPECT_EQ(DefaultEngine().Synthesize(request)->collective.num_chunks(), 1);
}

// The fastest plan, in four times as many chunks of less than 90 bytes, stays beside it.
TEST(Auto, LengthensChunksWhereThatCostsLittle) {
  const Topology topology = MakeRing(6);
  const std::vector<Rank> ranks = AllRanks(6);
  const Collective collective = *Collective::Create(SpecOf(CollectiveKind::kAllgather, ranks));
  SynthesisRequest request = RequestFor(topology, collective);
  request.size_bytes = 32 << 10;
  const Synthesis made = *DefaultEngine().Synthesize(request);
  ASSERT_FALSE(made.others.empty());
  const Synthesis& fastest = made.others.front();
  EXPECT_LT(fastest.simulation->time_ps, made.simulation->time_ps);
  EXPECT_LE(static_cast<double>(made.simulation->time_ps),
            1.02 * static_cast<double>(fastest.simulation->time_ps));
  EXPECT_LE(4 * made.collective.num_chunks(), fastest.collective.num_chunks());
}

Topology WithLatencies(const Topology& machine, const std::vector<int64_t>& latencies_ps) {
  TopologySpec spec = machine.spec();
  for (size_t l = 0; l < spec.links.size(); ++l)
    spec.links[l].latency_ps = latencies_ps[l * latencies_ps.size() / spec.links.size()];
  return *Topology::Create(std::move(spec));
}

// greedy's estimate of its time takes the slowest link for every hop, and is many times the time of its plan.
TEST(Auto, ASlowLinkThatPlansGoRoundCostsNoEngineItsTurn) {
  struct Case {
    std::string name;
    Topology topology;
    CollectiveKind kind;
    int64_t size_bytes;
  };
  const Case cases[] = {
      {"one way",
       WithLatencies(MakeDigraph(4, {{1, 2}, {0, 2}, {0, 1}, {1, 3}}), {8'000'000, 0, 40'000, 7'000}),
       CollectiveKind::kBroadcast, 3040},
      {"both ways",
       WithLatencies(MakeGraph(4, {{3, 0}, {2, 3}, {1, 2}, {0, 2}, {0, 1}, {1, 3}}),
                     {6'000, 700'000, 8'000'000, 1'300'000, 40'000, 2'000'000}),
       CollectiveKind::kReduceScatter, 3008},
  };
  for (const Case& c : cases) {
    CollectiveSpec spec = SpecOf(c.kind, AllRanks(4));
    if (spec.root) spec.root = Rank(0);
    const Collective collective = *Collective::Create(std::move(spec));
    SynthesisRequest request = RequestFor(c.topology, collective);
    request.size_bytes = c.size_bytes;
    const auto time_ps = [&](const Synthesis& plan) {
      return static_cast<double>(
          Simulate(plan.schedule, plan.collective, c.topology, {.size_bytes = request.size_bytes}).time_ps);
    };
    const double auto_ps = time_ps(*DefaultEngine().Synthesize(request));
    for (const Engine& engine : AllEngines()) {
      if (engine.searches_long || !engine.Serves(request).ok()) continue;
      const StatusOr<Synthesis> alone = engine.Synthesize(request);
      if (!alone.ok()) continue;
      EXPECT_LE(auto_ps, 1.02 * time_ps(*alone)) << c.name << ": " << engine.name;
    }
  }
}

TEST(Auto, NamesRanksThatAreNotJoined) {
  const Topology topology = MakeGraph(4, {{0, 1}, {2, 3}});
  const Collective collective =
      *Collective::Create(SpecOf(CollectiveKind::kAllgather, {Rank(0), Rank(1), Rank(2), Rank(3)}));
  const Status status = DefaultEngine().Synthesize(RequestFor(topology, collective)).status();
  EXPECT_EQ(status.code(), StatusCode::kInfeasible);
  EXPECT_EQ(status.message(), "test: no path from rank 0 to rank 2, which allgather needs");
}

TEST(Auto, NamesRanksThatTheTopologyLacks) {
  const Topology topology = MakeRing(4);
  const Collective collective = *Collective::Create(SpecOf(CollectiveKind::kAllgather, {Rank(0), Rank(9)}));
  const Status status = DefaultEngine().Synthesize(RequestFor(topology, collective)).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidInput);
  EXPECT_EQ(status.message(), "auto: rank 9; ranks of test are 0..3");
}

}  // namespace
}  // namespace xccl
