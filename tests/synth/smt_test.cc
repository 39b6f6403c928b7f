#include <gtest/gtest.h>

#include "ir/analysis/bitwise_same.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"
#include "synth/engines.h"
#include "synth/smt/schedule.h"

namespace xccl {
namespace {

Collective Of(CollectiveKind kind, int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(ranks);
  if (IsRooted(kind)) spec.root = Rank(0);
  if (kind == CollectiveKind::kAllgatherv || kind == CollectiveKind::kReduceScatterv)
    spec.counts.assign(static_cast<size_t>(ranks), 1);
  if (kind == CollectiveKind::kAlltoallv)
    spec.counts.assign(static_cast<size_t>(ranks) * static_cast<size_t>(ranks), 1);
  if (kind == CollectiveKind::kSendrecv)
    for (int32_t r = 0; r < ranks; ++r) spec.pairs.emplace_back(Rank(r), Rank((r + 2) % ranks));
  return Collective::Create(spec).value();
}

StatusOr<Synthesis> Solve(const Topology& topology, const Collective& collective,
                          std::optional<int32_t> chunks, std::optional<int32_t> steps,
                          std::optional<int32_t> rounds, int64_t work = 0) {
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  request.limits.chunks = chunks;
  request.limits.steps = steps;
  request.limits.rounds = rounds;
  request.limits.work_units = work;
  return FindEngine("smt").value()->Synthesize(request);
}

struct Row {
  CollectiveKind kind;
  int32_t chunks, steps, rounds;
};

// Rows of SCCL's table for the DGX-1, and for rings, that are quick to decide.
TEST(Smt, DecidesKnownRows) {
  const Topology dgx1 = testing::MakeDgx1(), ring = testing::MakeRing(8), hub = testing::MakeSwitch(4);
  const auto expect = [](const Topology& topology, const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      const StatusOr<Synthesis> made =
          Solve(topology, Of(row.kind, topology.num_ranks()), row.chunks, row.steps, row.rounds);
      const std::string_view what = ToString(row.kind);
      ASSERT_TRUE(made.ok()) << what << ": " << made.status().message();
      EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)), OkStatus()) << what;
      const smt::StepsAndRounds took = smt::Take(made->schedule, topology, smt::MakeMachine(topology));
      EXPECT_LE(took.steps, row.steps) << what;
      EXPECT_LE(took.rounds, row.rounds) << what;
    }
  };
  expect(dgx1, {{CollectiveKind::kAllgather, 1, 2, 2},
                {CollectiveKind::kAllgather, 2, 2, 3},
                {CollectiveKind::kBroadcast, 2, 2, 2},
                {CollectiveKind::kBroadcast, 6, 3, 3},
                {CollectiveKind::kGather, 1, 2, 2},
                {CollectiveKind::kReduceScatter, 1, 2, 2},
                {CollectiveKind::kReduce, 2, 2, 2},
                {CollectiveKind::kAlltoall, 1, 3, 3},
                {CollectiveKind::kAlltoall, 3, 2, 8},
                {CollectiveKind::kAllgather, 6, 3, 7},
                {CollectiveKind::kReduceScatter, 6, 3, 7},
                {CollectiveKind::kScatter, 6, 3, 7},
                {CollectiveKind::kAllreduce, 8, 4, 4}});
  expect(ring, {{CollectiveKind::kAllgather, 1, 4, 4},
                {CollectiveKind::kAllgather, 2, 4, 7},
                {CollectiveKind::kBroadcast, 2, 4, 4}});
  expect(hub, {{CollectiveKind::kAllgather, 1, 1, 3}, {CollectiveKind::kAllgather, 1, 3, 3}});
}

TEST(Smt, EveryCollectiveWithoutLimits) {
  const Topology mesh = testing::MakeGrid({2, 2}, false);
  for (CollectiveKind kind : AllNamedCollectives()) {
    const Collective collective = Of(kind, 4);
    const StatusOr<Synthesis> made = Solve(mesh, collective, {}, {}, {});
    ASSERT_TRUE(made.ok()) << ToString(kind) << ": " << made.status().message();
    EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, mesh)), OkStatus()) << ToString(kind);
    EXPECT_TRUE(IsBitwiseSame(made->schedule, made->collective, mesh)) << ToString(kind);
  }
}

// A ring takes no more rounds than greedy's plan and fewer steps, and twice the time.
TEST(Smt, TheFastestPlanOfOtherEnginesStandsIn) {
  const Topology torus = testing::MakeGrid({3, 3}, true);
  const Collective allreduce = Of(CollectiveKind::kAllreduce, 3);
  const StatusOr<Synthesis> made = Solve(torus, allreduce, 24, {}, {});
  ASSERT_TRUE(made.ok()) << made.status().message();
  SynthesisRequest request;
  request.topology = &torus;
  request.collective = &allreduce;
  request.limits.chunks = 24;
  request.limits.work_units = 200'000;
  for (const char* engine : {"greedy", "ring"}) {
    const Synthesis other = FindEngine(engine).value()->Synthesize(request).value();
    EXPECT_LE(made->simulation->time_ps,
              Simulate(other.schedule, other.collective, torus, {.size_bytes = request.size_bytes}).time_ps)
        << engine;
  }
}

TEST(Smt, OneLinkWithinARingIsExact) {
  const Topology ring = testing::MakeRing(3);
  const StatusOr<Synthesis> made = Solve(ring, Of(CollectiveKind::kAllgather, 3), 1, 1, 1);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->note, "1 steps, 1 rounds, 1 chunk a part, found by swing");
}

struct Refusal {
  std::string name;
  int32_t ranks;
  CollectiveKind kind;
  std::optional<int32_t> chunks, steps, rounds;
  int64_t work;
  Status expected;
};

TEST(Smt, Refusals) {
  const std::vector<Refusal> refusals = {
      {"distance", 8, CollectiveKind::kAllgather, 1, 3, 4, 0,
       Infeasible("smt: no allgather on 8 ranks in 3 steps: rank 4 is 4 links from rank 0; hint: --steps=4")},
      {"distance of a sum", 8, CollectiveKind::kReduce, 1, 3, 4, 0,
       Infeasible("smt: no reduce on 8 ranks in 3 steps: rank 0 is 4 links from rank 4; hint: --steps=4")},
      {"bandwidth", 8, CollectiveKind::kAllgather, 2, 6, 6, 0,
       Infeasible("smt: no allgather on 8 ranks with 2 chunks in 6 rounds: rank 0 must receive 14 chunks, 2 "
                  "a round; "
                  "hint: --rounds=7")},
      {"bandwidth of a sum", 8, CollectiveKind::kReduceScatter, 2, 6, 6, 0,
       Infeasible(
           "smt: no reduce_scatter on 8 ranks with 2 chunks in 6 rounds: rank 0 must send 14 chunks, 2 a "
           "round; hint: --rounds=7")},
      {"fewer rounds than links", 8, CollectiveKind::kAllgather, 1, 4, 3, 0,
       Infeasible(
           "smt: no allgather on 8 ranks with 1 chunks in 3 rounds: rank 4 is 4 links from rank 0; hint: "
           "--rounds=4")},
      {"distance of an allreduce", 8, CollectiveKind::kAllreduce, 1, 3, 9, 0,
       Infeasible("smt: no allreduce on 8 ranks in 3 steps: rank 4 is 4 links from rank 0; hint: --steps=4 "
                  "--allow-divergent")},
      {"bandwidth of an allreduce", 8, CollectiveKind::kAllreduce, 8, 9, 6, 0,
       Infeasible("smt: no allreduce on 8 ranks with 8 chunks in 6 rounds: a chunk of every part needs 7/8 "
                  "rounds; hint: --rounds=7")},
      {"no steps", 4, CollectiveKind::kAllgather, 1, 0, 2, 0,
       InvalidInput("smt: --steps=0; expected 1 to 1000")},
      {"little work", 8, CollectiveKind::kAlltoall, 1, 4, 8, 10,
       LimitReached(
           "smt: alltoall on 8 ranks: nothing found within 10 solver units; hint: --time-limit=60s, or "
           "fewer --chunks")},
      {"all links together", 8, CollectiveKind::kAlltoall, 1, 4, 7, 0,
       Infeasible(
           "smt: no alltoall on 8 ranks with 1 chunks in 7 rounds: 128 sends are needed, 16 a round fit; "
           "hint: --rounds=8")},
  };
  for (const Refusal& refusal : refusals) {
    const Topology ring = testing::MakeRing(refusal.ranks);
    EXPECT_EQ(Solve(ring, Of(refusal.kind, refusal.ranks), refusal.chunks, refusal.steps, refusal.rounds,
                    refusal.work)
                  .status(),
              refusal.expected)
        << refusal.name;
  }
}

// SCCL's encoding takes seconds or more to refute the following requests.
TEST(Smt, RefutesByPricesAndSaysWhatWouldDo) {
  const Topology dgx1 = testing::MakeDgx1();
  EXPECT_EQ(
      Solve(dgx1, Of(CollectiveKind::kAlltoall, 8), 1, 2, 2).status(),
      Infeasible("smt: no alltoall on 8 ranks with 1 chunks in 2 rounds: a chunk of every part needs 8/3 "
                 "rounds; hint: --rounds=3"));
  EXPECT_EQ(
      Solve(dgx1, Of(CollectiveKind::kAllgather, 8), 6, 2, 7).status(),
      Infeasible("smt: no allgather on 8 ranks with 6 chunks in 7 rounds: a chunk of every part needs 3/2 "
                 "rounds in 2 steps; hint: --rounds=9"));
  EXPECT_EQ(
      Solve(dgx1, Of(CollectiveKind::kAllgather, 8), 6, 6, 6).status(),
      Infeasible("smt: no allgather on 8 ranks with 6 chunks in 6 rounds: rank 0 must receive 42 chunks, 6 "
                 "a round; hint: --rounds=7"));
}

// A ring of 5 needs at least 3 steps, though no two ranks are more than 2 links apart: in two steps
// something would be added twice. With three, all get the same bits.
TEST(Smt, DirectAllreduceOfARingOfFiveEnds) {
  const Topology ring = testing::MakeRing(5);
  const Collective allreduce = Of(CollectiveKind::kAllreduce, 5);
  const StatusOr<Synthesis> refuted = Solve(ring, allreduce, 1, 2, 9);
  EXPECT_EQ(
      refuted.status(),
      Infeasible("smt: no allreduce on 5 ranks with 1 chunks in 2 steps and 9 rounds; hint: --steps=3"));
  const StatusOr<Synthesis> made = Solve(ring, allreduce, 5, 4, 6);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, ring)), OkStatus());
}

// The solver decides nothing with so little work. Witnesses at one chunk a part take 1.7 times as long as at
// others.
TEST(Smt, ReturnsTheBestPlanKnownWhereItsWorkIsUsedUp) {
  const Topology dgx1 = testing::MakeDgx1();
  const Collective allreduce = Of(CollectiveKind::kAllreduce, 8);
  const StatusOr<Synthesis> made = Solve(dgx1, allreduce, {}, {}, {}, 100);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->engine, "smt");
  EXPECT_FALSE(made->exact);
  const Bound bound = LowerBound(dgx1, allreduce, int64_t{64} << 20, TimeModel::kPipelined).value();
  EXPECT_LT(static_cast<double>(made->simulation->time_ps), 1.2 * static_cast<double>(bound.bound_ps));
}

// This table is neither a gather nor a broadcast: rank 0 needs a sum of two, rank 2 of all three.
TEST(Smt, UserDefinedSums) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kCustom;
  spec.custom_name = "prefix";
  spec.ranks = {Rank(0), Rank(1), Rank(2)};
  spec.custom_weights = {1};
  for (int32_t r = 0; r < 3; ++r) spec.pre.push_back({Rank(r), PartId(0), {Rank(r)}});
  spec.post = {{Rank(1), PartId(0), {Rank(0), Rank(1)}}, {Rank(2), PartId(0), {Rank(0), Rank(1), Rank(2)}}};
  const Collective prefix = Collective::Create(spec).value();
  const Topology line = testing::MakeGrid({3}, false);
  const StatusOr<Synthesis> made = Solve(line, prefix, 1, 2, 2);
  EXPECT_EQ(made.status().message(), "");
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, line)), OkStatus());
  EXPECT_EQ(Solve(line, prefix, 1, 1, 1).status(),
            Infeasible("smt: no prefix on 3 ranks in 1 step: rank 2 is 2 links from rank 0; hint: --steps=2 "
                       "--rounds=2"));
}

// Two GPUs with five switches between them: only four of the five paths are listed.
TEST(Smt, WaysThatAreLeftOutStillCountForWhatARankCanTakeIn) {
  TopologySpec spec;
  spec.name = "planes";
  spec.hosts.push_back({"host"});
  for (int32_t v = 0; v < 7; ++v)
    spec.nodes.push_back({v < 2 ? NodeKind::kGpu : NodeKind::kSwitch, std::to_string(v), HostId(0)});
  for (int32_t gpu = 0; gpu < 2; ++gpu)
    for (int32_t v = 2; v < 7; ++v) {
      spec.links.push_back({NodeId(gpu), NodeId(v), 10'000'000'000, 1'000'000, 0});
      spec.links.push_back({NodeId(v), NodeId(gpu), 10'000'000'000, 1'000'000, 0});
    }
  const Topology planes = Topology::Create(spec).value();
  const StatusOr<Synthesis> made = Solve(planes, Of(CollectiveKind::kAllgather, 2), 5, 1, 1);
  EXPECT_EQ(made.status(), OkStatus());
  EXPECT_EQ(
      Solve(planes, Of(CollectiveKind::kAllgather, 2), 6, 1, 1).status(),
      Infeasible("smt: no allgather on 2 ranks with 6 chunks in 1 rounds: rank 0 must receive 6 chunks, 5 a "
                 "round; hint: --rounds=2"));
}

// All three ranks send to both others at once: one step of two rounds, which two steps of one round cannot
// replace.
TEST(Smt, SumsInFewerAndLongerStepsAreNotRefuted) {
  const Topology hub = testing::MakeSwitch(3);
  const Collective allreduce = Of(CollectiveKind::kAllreduce, 3);
  SynthesisRequest request;
  request.topology = &hub;
  request.collective = &allreduce;
  request.allow_divergent = true;
  request.limits = {.chunks = 1, .steps = 2, .rounds = 2, .work_units = 0, .deadline = Deadline()};
  const StatusOr<Synthesis> made = FindEngine("smt").value()->Synthesize(request);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->schedule.num_steps(), 1);
}

// The hub holds nothing, so the first message to it is a copy and must arrive alone.
TEST(Smt, SumsOverAnEmptyRelayKeepToTheStepsAskedFor) {
  const Topology star = testing::MakeGraph(4, {{0, 1}, {0, 2}, {0, 3}});
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kReduce;
  spec.ranks = {Rank(1), Rank(2), Rank(3)};
  spec.root = Rank(3);
  const Collective reduce = Collective::Create(spec).value();
  EXPECT_EQ(
      Solve(star, reduce, 1, 2, 2).status(),
      Infeasible("smt: no reduce on 3 ranks with 1 chunks in 2 steps and 2 rounds: in conflict are sends "
                 "of rank 1, 2; hint: --steps=3 --rounds=3"));
  const StatusOr<Synthesis> made = Solve(star, reduce, 1, 3, 3);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, star)), OkStatus());
}

// One request leads to several questions. If all that were asked have no solution, the others may still
// have one.
TEST(Smt, OnlyTheHardestQuestionRefutesARequest) {
  const Topology ring = testing::MakeRing(5);
  const Collective allreduce = Of(CollectiveKind::kAllreduce, 5);
  EXPECT_EQ(Solve(ring, allreduce, {}, 2, {}).status(),
            Infeasible("smt: no allreduce on 5 ranks with 1 chunks in 2 steps; hint: --steps=4"));
  EXPECT_EQ(Solve(ring, allreduce, {}, {}, 2).status(),
            Infeasible("smt: no allreduce on 5 ranks with 1 chunks in 2 rounds; hint: --rounds=4"));
  EXPECT_EQ(Solve(ring, allreduce, {}, 3, {}).status(),
            LimitReached("smt: allreduce on 5 ranks: only found with different roundings of a sum; hint: "
                         "--allow-divergent"));
}

// Short searches for the most promising questions fail, and no other engine has a plan to fall back on.
TEST(Smt, UserDefinedSumsAreFoundWithoutLimits) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kCustom;
  spec.custom_name = "scan";
  spec.custom_weights = {1};
  std::vector<Rank> up_to;
  for (int32_t r = 0; r < 4; ++r) {
    spec.ranks.push_back(Rank(r));
    up_to.push_back(Rank(r));
    spec.pre.push_back({Rank(r), PartId(0), {Rank(r)}});
    spec.post.push_back({Rank(r), PartId(0), up_to});
  }
  const Collective scan = Collective::Create(spec).value();
  const Topology ring = testing::MakeRing(4);
  const StatusOr<Synthesis> made = Solve(ring, scan, {}, {}, {});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, ring)), OkStatus());
}

TEST(Smt, InterruptedSearchesGiveWhatThereIs) {
  const Topology dgx1 = testing::MakeDgx1();
  const Collective allgather = Of(CollectiveKind::kAllgather, 8);
  SynthesisRequest request;
  request.topology = &dgx1;
  request.collective = &allgather;
  Interrupt interrupt;
  interrupt.Set();
  request.limits.deadline = Deadline().With(interrupt).Leaving(0, 0);
  const StatusOr<Synthesis> made = FindEngine("smt").value()->Synthesize(request);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_FALSE(made->exact);
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, dgx1)), OkStatus());
  request.limits = {
      .chunks = 6, .steps = 3, .rounds = 7, .work_units = 0, .deadline = request.limits.deadline};
  EXPECT_EQ(FindEngine("smt").value()->Synthesize(request).status(),
            LimitReached("smt: allgather on 8 ranks: interrupted, nothing found"));
}

TEST(Smt, RefusesManyRanksAndUnequalParts) {
  const Topology big = testing::MakeRing(65), small = testing::MakeRing(3);
  EXPECT_EQ(Solve(big, Of(CollectiveKind::kAllgather, 65), 1, 32, 32).status(),
            InvalidInput("smt: 65 ranks; at most 64 are served; hint: --engine=greedy"));
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllgatherv;
  spec.ranks = {Rank(0), Rank(1), Rank(2)};
  spec.counts = {1, 2, 1};
  EXPECT_EQ(
      Solve(small, Collective::Create(spec).value(), 1, 2, 2).status(),
      InvalidInput("smt: allgatherv: parts of different sizes; expected equal ones; hint: --engine=greedy"));
}

}  // namespace
}  // namespace xccl
