// Balance against the best of all ways to share out; schedules of bfb on machines where the answer is known,
// compressed ones among them, and on odd ones where only the rules are.
#include "synth/bfb/bfb.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/random.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/translated.h"
#include "ir/verify/verify_schedule.h"
#include "synth/bfb/balance.h"
#include "synth/common/test_machines.h"
#include "topologies/load/load.h"
#include "topologies/paths.h"

namespace xccl {
namespace {

using testing::Machine;
using testing::Machines;
using testing::MakeDgx1;
using testing::MakeGraph;
using testing::MemberLists;
using testing::SpecOf;

// Loads ÷ speeds, largest first.
std::vector<double> Heights(const BalanceProblem& problem, const std::vector<int64_t>& flow) {
  std::vector<double> load = problem.base;
  for (size_t e = 0; e < flow.size(); ++e)
    load[static_cast<size_t>(problem.port[e])] += static_cast<double>(flow[e]);
  for (size_t p = 0; p < load.size(); ++p) load[p] /= problem.speed[p];
  std::sort(load.rbegin(), load.rend());
  return load;
}

std::vector<double> BestHeights(const BalanceProblem& problem) {
  std::vector<int64_t> flow(problem.port.size(), 0);
  std::vector<double> best;
  const std::function<void(size_t, size_t, int64_t)> share = [&](size_t type, size_t entry, int64_t left) {
    if (type == problem.supply.size()) {
      std::vector<double> heights = Heights(problem, flow);
      if (best.empty() || heights < best) best = std::move(heights);
      return;
    }
    const size_t end = static_cast<size_t>(problem.first[type + 1]);
    const auto next = [&] {
      const size_t then = type + 1;
      share(then, end, then < problem.supply.size() ? problem.supply[then] : 0);
    };
    if (entry + 1 == end) {
      flow[entry] = left;
      return next();
    }
    for (int64_t units = 0; units <= left; ++units) {
      flow[entry] = units;
      share(type, entry + 1, left - units);
    }
  };
  share(0, 0, problem.supply[0]);
  return best;
}

TEST(Balance, IsTheBestOfAllOnRandomProblems) {
  Random random(7);
  for (int i = 0; i < 300; ++i) {
    BalanceProblem problem;
    const size_t ports = 1 + random.Below(4);
    for (size_t p = 0; p < ports; ++p) {
      problem.base.push_back(static_cast<double>(random.Below(4)));
      problem.speed.push_back(static_cast<double>(1 + random.Below(i % 2 == 0 ? 1 : 3)));
    }
    const size_t types = 1 + random.Below(3);
    for (size_t t = 0; t < types; ++t) {
      std::vector<int32_t> open(ports);
      std::iota(open.begin(), open.end(), 0);
      random.Shuffle(std::span(open));
      open.resize(1 + random.Below(ports));
      problem.AddType(static_cast<int64_t>(random.Below(6)), open);
    }
    const std::vector<int64_t> flow = Balance(problem);
    for (size_t t = 0; t < types; ++t)
      EXPECT_EQ(
          std::accumulate(flow.begin() + problem.first[t], flow.begin() + problem.first[t + 1], int64_t{0}),
          problem.supply[t]);
    const std::vector<double> found = Heights(problem, flow), best = BestHeights(problem);
    EXPECT_NEAR(found[0], best[0], 1e-9) << "problem " << i;
  }
}

TEST(Balance, MovesWhatWasPouredTooEarly) {
  // The second type fits only where the first one went as well.
  BalanceProblem problem;
  problem.base = {0, 0, 0};
  problem.speed = {1, 1, 1};
  const int32_t left[] = {0, 1}, right[] = {1, 2};
  problem.AddType(6, left);
  problem.AddType(6, right);
  EXPECT_EQ(Heights(problem, Balance(problem)), (std::vector<double>{4, 4, 4}));
}

SynthesisRequest RequestFor(const Topology& topology, const Collective& collective, int64_t size_bytes,
                            TimeModel model) {
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  request.size_bytes = size_bytes;
  request.model = model;
  return request;
}

struct Exact {
  std::string topology;
  int32_t steps;   // the diameter
  int64_t shares;  // of the busiest rank's links: members that it hears of ÷ links
  int64_t of;
};

class BfbExact : public ::testing::TestWithParam<Exact> {};

// Diameter × alpha + what a rank receives ÷ bandwidth of its links, both ways round.
TEST_P(BfbExact, TakesLatencyPlusBandwidthInTheBlockingModel) {
  const Exact& row = GetParam();
  const Topology topology = *LoadTopology(row.topology + "@bandwidth=1GB/s,latency=500ns");
  for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter}) {
    const Collective collective = *Collective::Create(SpecOf(kind, AllRanks(topology.num_ranks())));
    const int64_t part = 240 * 1024;  // divides by every number of chunks in use
    const SynthesisRequest request =
        RequestFor(topology, collective, part * topology.num_ranks(), TimeModel::kBlocking);
    const Synthesis made = *BfbEngine().Synthesize(request);
    const Schedule plain = *Expand(made.schedule, made.collective, topology);
    EXPECT_EQ(ToStatus(VerifySchedule(plain, made.collective, topology)), OkStatus());
    EXPECT_EQ(made.schedule.num_steps(), row.steps);
    const Simulation simulation = Simulate(made.schedule, made.collective, topology,
                                           {.size_bytes = request.size_bytes, .model = request.model});
    EXPECT_EQ(simulation.time_ps, row.steps * 500'000 + part * 1000 * row.shares / row.of);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, BfbExact,
                         ::testing::Values(Exact{"ring:2", 1, 1, 1}, Exact{"ring:7", 3, 3, 1},
                                           Exact{"ring:8", 4, 7, 2}, Exact{"torus:4x4", 4, 15, 4},
                                           Exact{"torus:5x7", 5, 34, 4}, Exact{"torus:8x8", 8, 63, 4},
                                           Exact{"torus:4x4x4", 6, 63, 6}, Exact{"hypercube:3", 3, 7, 3},
                                           Exact{"hypercube:4", 4, 15, 4}, Exact{"hypercube:6", 6, 63, 6},
                                           Exact{"full-mesh:9", 1, 1, 1}, Exact{"torus:16x16", 16, 255, 4}),
                         [](const auto& info) {
                           std::string name = info.param.topology;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return c == ':' || c == '-'; }, '_');
                           return name;
                         });

struct Near {
  std::string topology;
  double ratio;
};

TEST(Bfb, IsNearTheBoundAtLargeSizes) {
  const Near rows[] = {{"torus:4x4", 1.001},   {"torus:8x8", 1.001},    {"torus:16x16", 1.001},
                       {"hypercube:8", 1.001}, {"full-mesh:16", 1.001}, {"ring:64", 1.001},
                       {"mesh:4x4", 1.001},    {"mesh:8x8", 1.001},     {"nvswitch:8", 1.001},
                       {"dgx-h100", 1.001},    {"rail-2", 1.01},        {"rail-4", 1.01},
                       {"rail-8", 1.01}};
  for (const Near& row : rows) {
    const Topology topology = *LoadTopology(row.topology);
    for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter}) {
      const Collective collective = *Collective::Create(SpecOf(kind, AllRanks(topology.num_ranks())));
      const SynthesisRequest request =
          RequestFor(topology, collective, int64_t{1} << 30, TimeModel::kPipelined);
      const Synthesis made = *BfbEngine().Synthesize(request);
      EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, topology)), OkStatus())
          << row.topology;
      const Bound bound = *LowerBound(topology, collective, request.size_bytes, request.model);
      const Simulation simulation =
          Simulate(made.schedule, made.collective, topology, {.size_bytes = request.size_bytes});
      EXPECT_LE(static_cast<double>(simulation.time_ps), row.ratio * static_cast<double>(bound.bound_ps))
          << row.topology << ", " << collective.name();
    }
  }
}

TEST(Bfb, KeepsLargeMachinesCompressed) {
  const Topology topology = *LoadTopology("torus:40x40");
  for (const CollectiveKind kind :
       {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter, CollectiveKind::kAllreduce}) {
    const Collective collective = *Collective::Create(SpecOf(kind, AllRanks(1600)));
    const Synthesis made =
        *BfbEngine().Synthesize(RequestFor(topology, collective, 64 << 20, TimeModel::kPipelined));
    EXPECT_FALSE(made.schedule.symmetry.empty());
    EXPECT_LT(made.schedule.size(), 2 * 16 * 1600);
    EXPECT_EQ(made.schedule.num_steps(), kind == CollectiveKind::kAllreduce ? 80 : 40);
    EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, topology)), OkStatus());
  }
}

TEST(Bfb, ServesEveryShapeAndSubset) {
  const CollectiveKind kinds[] = {CollectiveKind::kAllgather,     CollectiveKind::kAllgatherv,
                                  CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv,
                                  CollectiveKind::kAllreduce,     CollectiveKind::kBroadcast,
                                  CollectiveKind::kReduce,        CollectiveKind::kBarrier};
  for (const Machine& machine : Machines()) {
    for (const std::vector<Rank>& members : MemberLists(machine.topology.num_ranks())) {
      for (const CollectiveKind kind : kinds) {
        const Collective collective = *Collective::Create(SpecOf(kind, members));
        for (const TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
          for (const int32_t chunks : {0, 1, 5}) {
            SynthesisRequest request = RequestFor(machine.topology, collective, 1 << 20, model);
            if (chunks > 0) request.limits.chunks = chunks;
            const Synthesis made = *BfbEngine().Synthesize(request);
            const std::string where = fmt::format("{}, {} of {} ranks, {} chunks", machine.name,
                                                  collective.name(), members.size(), chunks);
            EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, machine.topology)), OkStatus())
                << where;
            if (chunks > 0) {
              EXPECT_EQ(made.collective.num_chunks(), chunks * collective.num_parts()) << where;
            }
          }
        }
      }
    }
  }
}

TEST(Bfb, TakesAsManyStepsAsAnyoneIsHopsAway) {
  for (const Machine& machine : Machines()) {
    // Where hops are alike: over some switches two short hops beat a long one.
    if (machine.name.find("cluster") != std::string::npos) continue;
    const Collective collective =
        *Collective::Create(SpecOf(CollectiveKind::kAllgather, AllRanks(machine.topology.num_ranks())));
    const Synthesis made =
        *BfbEngine().Synthesize(RequestFor(machine.topology, collective, 4096, TimeModel::kBlocking));
    EXPECT_GE(made.schedule.num_steps(), *RankDiameter(machine.topology)) << machine.name;
    EXPECT_LE(made.schedule.num_steps(), *RankDiameter(machine.topology) + 1) << machine.name;
  }
}

TEST(Bfb, AnAllreduceOfLittleMeetsInTheMiddle) {
  const Topology topology = MakeGraph(5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}});
  const Collective collective = *Collective::Create(SpecOf(CollectiveKind::kAllreduce, AllRanks(5)));
  EXPECT_EQ(BfbEngine()
                .Synthesize(RequestFor(topology, collective, 64, TimeModel::kBlocking))
                ->schedule.num_steps(),
            4);
}

// Waves take more steps than shortest paths need. Over switches and NICs, paths differ in their hops, too.
TEST(Bfb, KeepsToTheStepsThatShortestPathsNeed) {
  const Topology topology = testing::MakeCluster(4, 4);
  for (const CollectiveKind kind :
       {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter, CollectiveKind::kAllreduce}) {
    const Collective collective = *Collective::Create(SpecOf(kind, AllRanks(16)));
    SynthesisRequest request = RequestFor(topology, collective, 1 << 30, TimeModel::kPipelined);
    const int32_t free = BfbEngine().Synthesize(request)->schedule.num_steps();
    int32_t fewest = free;
    for (int32_t steps = free; steps > 0; --steps) {
      request.limits.steps = steps;
      const StatusOr<Synthesis> made = BfbEngine().Synthesize(request);
      if (made.ok()) {
        EXPECT_LE(made->schedule.num_steps(), steps);
        EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)), OkStatus());
        fewest = std::min(fewest, made->schedule.num_steps());
        continue;
      }
      EXPECT_EQ(
          made.status(),
          LimitReached(fmt::format("bfb: {} on {}: {} steps at least were used; at most {} are allowed; "
                                   "hint: --steps={}",
                                   collective.name(), topology.name(), fewest, steps, fewest),
                       fewest));
    }
    EXPECT_EQ(fewest, kind == CollectiveKind::kAllreduce ? 2 : 1);
  }
}

int64_t WorkOffered(const Topology& topology, CollectiveKind kind, int64_t* bytes = nullptr) {
  const Collective collective = *Collective::Create(SpecOf(kind, AllRanks(topology.num_ranks())));
  const SynthesisRequest request{.topology = &topology, .collective = &collective};
  const StatusOr<Offer> offer = BfbEngine().Offered(request);
  EXPECT_TRUE(offer.ok()) << offer.status().message();
  if (bytes != nullptr) *bytes = offer->bytes;
  return offer->work;
}

// Translations serve an allreduce as they serve its two halves.
TEST(Bfb, OffersTheWorkOfBothHalvesOfAnAllreduce) {
  const Topology torus = testing::MakeGrid({8, 8}, true);
  EXPECT_EQ(WorkOffered(torus, CollectiveKind::kAllreduce),
            2 * WorkOffered(torus, CollectiveKind::kAllgather));
}

// Every rank is next to every other behind switches, so that hops and their memory grow with the square.
TEST(Bfb, OffersTheMemoryOfAllHops) {
  int64_t few = 0, many = 0;
  WorkOffered(testing::MakeCluster(8, 4), CollectiveKind::kAllgather, &few);
  WorkOffered(testing::MakeCluster(80, 4), CollectiveKind::kAllgather, &many);
  EXPECT_GT(few, 32 * 31 * 100);
  EXPECT_GT(many, 80 * few);
}

// A table of distances has a row for each source; a broadcast has one.
TEST(Bfb, RefusesTooManyPairsBeforeItBegins) {
  std::vector<std::pair<int32_t, int32_t>> cables;
  for (int32_t r = 0; r + 1 < 8200; ++r) cables.emplace_back(r, r + 1);
  const Topology line = testing::MakeGraph(8200, cables);
  EXPECT_GT(WorkOffered(line, CollectiveKind::kBroadcast), 0);
  const Collective allgather =
      *Collective::Create(SpecOf(CollectiveKind::kAllgather, AllRanks(line.num_ranks())));
  const SynthesisRequest request{.topology = &line, .collective = &allgather};
  EXPECT_EQ(BfbEngine().Offered(request).status().message(),
            "bfb: 67240000 pairs of a rank and a source without symmetry; at most 67108864");
}

TEST(Bfb, SaysWhatItDoesNotServe) {
  const Topology topology = MakeDgx1();
  const Collective alltoall = *Collective::Create(SpecOf(CollectiveKind::kAlltoall, AllRanks(8)));
  EXPECT_EQ(BfbEngine().Synthesize(RequestFor(topology, alltoall, 64, TimeModel::kBlocking)).status(),
            InvalidInput("bfb: does not serve alltoall; it serves allreduce, allgather, allgatherv, "
                         "reduce_scatter, reduce_scatterv, broadcast, reduce, barrier; hint: --engine=auto"));
  const Collective allgather = *Collective::Create(SpecOf(CollectiveKind::kAllgather, AllRanks(8)));
  SynthesisRequest request = RequestFor(topology, allgather, 64, TimeModel::kBlocking);
  request.limits.steps = 1;
  EXPECT_EQ(
      BfbEngine().Synthesize(request).status(),
      Infeasible("bfb: no allgather on 8 ranks in 1 step: rank 5 is 2 links from rank 0; hint: --steps=2"));
}

}  // namespace
}  // namespace xccl
