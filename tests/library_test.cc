// Tests the promise of `plan`: on every machine of the library and for every collective, `auto` returns a
// plan that verifies and lowers to a program that verifies. Up to 64 ranks the program also runs on the CPU
// and gives the right result. Above 64 ranks only allgather and allreduce are planned; above 256, only with
// XCCL_LONG=1. Of machines that differ in bandwidths alone, one is planned.
#include "tests/testing/library.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "ir/analysis/bitwise_same.h"
#include "ir/bounds/bound.h"
#include "ir/lower/testing/checked.h"
#include "ir/time_model.h"
#include "ir/verify/verify_plan.h"
#include "ir/verify/verify_schedule.h"
#include "runtime/cpu/run_program.h"
#include "synth/common/synthesizer.h"
#include "synth/engines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int64_t kPlanSize = 1 << 20;

bool IsLong() { return std::getenv("XCCL_LONG") != nullptr; }

// Counts are uneven and include zeros; pairs form a shifted ring.
CollectiveSpec SpecOf(CollectiveKind kind, int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(ranks);
  switch (kind) {
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      spec.root = Rank(ranks / 2);
      break;
    case CollectiveKind::kAllgatherv:
    case CollectiveKind::kReduceScatterv:
      for (int32_t r = 0; r < ranks; ++r) spec.counts.push_back((r * 7) % 5);
      spec.counts[0] = 3;
      break;
    case CollectiveKind::kAlltoallv:
      for (int32_t i = 0; i < ranks * ranks; ++i) spec.counts.push_back((i * 5) % 4);
      spec.counts[0] = 1;
      break;
    case CollectiveKind::kSendrecv:
      for (int32_t r = 0; r < ranks; ++r) spec.pairs.emplace_back(Rank(r), Rank((r + 1) % ranks));
      break;
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kAllgather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kCustom:
      break;
  }
  return spec;
}

std::vector<CollectiveKind> KindsFor(int32_t ranks) {
  if (ranks > 64) return {CollectiveKind::kAllgather, CollectiveKind::kAllreduce};
  const std::span<const CollectiveKind> all = AllNamedCollectives();
  return {all.begin(), all.end()};
}

void PlanAndRun(const Topology& topology, CollectiveKind kind) {
  SCOPED_TRACE(topology.name() + " " + std::string(ToString(kind)));
  const StatusOr<Collective> collective = Collective::Create(SpecOf(kind, topology.num_ranks()));
  ASSERT_TRUE(collective.ok()) << collective.status().message();
  const Engine* const engine = *FindEngine("auto");
  const StatusOr<Synthesis> made =
      engine->Synthesize({.topology = &topology, .collective = &*collective, .size_bytes = kPlanSize});
  ASSERT_TRUE(made.ok()) << made.status().message();
  SCOPED_TRACE(made->engine);
  const Status proved = ToStatus(VerifySchedule(made->schedule, made->collective, topology));
  ASSERT_TRUE(proved.ok()) << proved.message();
  EXPECT_TRUE(IsBitwiseSame(made->schedule, made->collective, topology));
  const Simulation simulation =
      Simulate(made->schedule, made->collective, topology, {.size_bytes = kPlanSize});
  const StatusOr<Bound> bound = LowerBound(topology, made->collective, kPlanSize, TimeModel::kPipelined);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_GE(simulation.time_ps, bound->bound_ps);
  if (topology.num_ranks() > 64) return;

  // As plan lowers it: parts that only move together are one chunk.
  const StatusOr<LoweredProgram> lowered =
      LowerFoldedChecked(made->schedule, made->collective, topology, {.size_bytes = kPlanSize});
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  const Status program_proved =
      ToStatus(VerifyPlan({topology, made->collective, made->schedule, *lowered, {}, true}));
  ASSERT_TRUE(program_proved.ok()) << program_proved.message();
  const StatusOr<std::vector<RunRow>> rows = RunProgram(
      lowered->program, lowered->collective, {.sizes_bytes = {50'004}, .iterations = 1, .warmup = 0});
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_FALSE(rows->empty());
  for (const RunRow& row : *rows) {
    EXPECT_EQ(row.wrong, 0) << "in place: " << row.in_place;
    EXPECT_EQ(row.out_of_bounds, 0) << "in place: " << row.in_place;
  }
}

std::string NameOf(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

class LibraryTest : public testing::TestWithParam<std::string> {};

TEST_P(LibraryTest, AutoPlansEveryCollectiveAndItRuns) {
  const StatusOr<Topology> topology = LoadTopology(GetParam());
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  if (topology->num_ranks() > 256 && !IsLong()) GTEST_SKIP() << "over 256 ranks: with XCCL_LONG=1";
  if (GetParam() == "trn2-ultraserver" && !IsLong()) GTEST_SKIP() << "a torus as tpu-v4: with XCCL_LONG=1";
  for (CollectiveKind kind : KindsFor(topology->num_ranks())) PlanAndRun(*topology, kind);
}

INSTANTIATE_TEST_SUITE_P(All, LibraryTest, testing::ValuesIn(DistinctShapes()), NameOf);

// Today's machines, at a small and a large size.
class TodaysMachinesTest : public testing::TestWithParam<std::string> {};

TEST_P(TodaysMachinesTest, AutoPlansSmallAndLargeSizes) {
  const StatusOr<Topology> topology = LoadTopology(GetParam());
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  for (const CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAlltoall})
    for (const int64_t size_bytes : {int64_t{64} << 10, int64_t{64} << 20}) {
      SCOPED_TRACE(std::string(ToString(kind)) + " " + std::to_string(size_bytes));
      const StatusOr<Collective> collective = Collective::Create(SpecOf(kind, topology->num_ranks()));
      ASSERT_TRUE(collective.ok()) << collective.status().message();
      const StatusOr<Synthesis> made =
          (*FindEngine("auto"))
              ->Synthesize({.topology = &*topology, .collective = &*collective, .size_bytes = size_bytes});
      ASSERT_TRUE(made.ok()) << made.status().message();
      const Status proved = ToStatus(VerifySchedule(made->schedule, made->collective, *topology));
      EXPECT_TRUE(proved.ok()) << made->engine << ": " << proved.message();
    }
}

// Of machines with the same numbers (a4, dgx-b200 and p6-b200; dgx-h100 and hgx-h200; mi300x and mi325x;
// tpu-v5p and tpu7x) one. The others are large.
INSTANTIATE_TEST_SUITE_P(All, TodaysMachinesTest,
                         testing::Values("a3-mega", "dgx-b200", "dgx-b300", "gb300-nvl72", "hgx-h200",
                                         "mi325x", "mi355x", "ndv6", "p5en", "tpu7x", "trn2",
                                         "trn2-ultraserver"),
                         NameOf);

}  // namespace
}  // namespace xccl
