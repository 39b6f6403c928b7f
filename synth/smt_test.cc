#include "synth/smt.h"

#include <gtest/gtest.h>

#include "ir/verify_schedule.h"
#include "synth/test_machines.h"

namespace xccl {
namespace {

Collective Of(CollectiveKind kind, int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = kind;
  for (int32_t r = 0; r < ranks; ++r) spec.ranks.push_back(Rank(r));
  if (kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce ||
      kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter)
    spec.root = Rank(0);
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
  return MakeSmt()->Synthesize(request);
}

struct Row {
  CollectiveKind kind;
  int32_t chunks, steps, rounds;
};

// Rows of SCCL's table for the DGX-1 and for rings that are quick.
TEST(Smt, DecidesKnownRows) {
  const Topology dgx1 = testing::MakeDgx1(), ring = testing::MakeRing(8), hub = testing::MakeSwitch(4);
  const auto expect = [](const Topology& topology, const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      const StatusOr<Synthesis> made =
          Solve(topology, Of(row.kind, topology.num_ranks()), row.chunks, row.steps, row.rounds);
      const std::string_view what = ToString(row.kind);
      ASSERT_TRUE(made.ok()) << what << ": " << made.status().message();
      EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)), OkStatus()) << what;
      EXPECT_LE(made->schedule.num_steps(), 2 * row.steps) << what;
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

TEST(Smt, OneLinkWithinARingIsExact) {
  const Topology ring = testing::MakeRing(3);
  const StatusOr<Synthesis> made = Solve(ring, Of(CollectiveKind::kAllgather, 3), 1, 1, 1);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->note, "1 steps, 1 rounds, 1 chunks a part");
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
      {"fewer rounds than steps", 4, CollectiveKind::kAllgather, 1, 3, 2, 0,
       Infeasible(
           "smt: no allgather on 4 ranks in 3 steps and 2 rounds: a step has at least one round; hint: "
           "--rounds=3")},
      {"no steps", 4, CollectiveKind::kAllgather, 1, 0, 2, 0,
       InvalidInput("smt: --steps=0; expected 1 to 1000")},
      {"little work", 8, CollectiveKind::kAlltoall, 1, 8, 8, 10,
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

TEST(Smt, NamesTheRoundsThatWorkAfterAProof) {
  EXPECT_EQ(
      Solve(testing::MakeDgx1(), Of(CollectiveKind::kAlltoall, 8), 1, 2, 2).status(),
      Infeasible(
          "smt: no alltoall on 8 ranks with 1 chunks in 2 steps and 2 rounds; hint: --steps=3 --rounds=3"));
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
