// Deadlines that have passed, or pass while a stage waits, and interrupts: what was found until then is
// kept.
#include <gtest/gtest.h>

#include "ir/collective_args.h"
#include "pipeline/compare.h"
#include "pipeline/pipeline.h"
#include "pipeline/run.h"
#include "pipeline/search.h"
#include "synth/engines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

Collective Of(CollectiveKind kind, const Topology& topology) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(topology.num_ranks());
  return Collective::Create(std::move(spec)).value();
}

TEST(Limits, APlanWhoseProgramIsNotThereInTimeIsKeptWithoutIt) {
  const Topology topology = LoadTopology("dgx-h100").value();
  const Collective allreduce = Of(CollectiveKind::kAllreduce, topology);
  PlanOptions options{.lower = true};
  const Bound bound =
      LowerBound(topology, allreduce, options.request.size_bytes, options.request.model).value();
  const SynthesisRequest request = RequestOf(topology, allreduce, options, &bound);
  Synthesis made = FindEngine("ring").value()->Synthesize(request).value();
  made.simulation = SimulationOf(made, request, options.deadline).value();
  const int64_t transfers = made.schedule.size();
  options.deadline = Deadline(0);
  std::vector<Synthesis> found = {std::move(made)};
  const StatusOr<PlanResult> result = CompletePlan(topology, found, bound, 0, options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->plan.program);
  EXPECT_FALSE(result->program_time_ps);
  EXPECT_EQ(result->plan.schedule.size(), transfers);
  EXPECT_NE(result->no_program.find("--time-limit=0s passed"), std::string::npos) << result->no_program;
}

// 1.6 million transfers: the program would take longer than there is, and is not begun.
TEST(Limits, APlanWhoseProgramWouldBeLateIsKeptWithoutIt) {
  const Topology topology = LoadTopology("torus:8x8x8").value();
  PlanOptions options{.lower = true};
  options.deadline = Deadline(6);
  const StatusOr<PlanResult> result = MakePlan(topology, Of(CollectiveKind::kAlltoall, topology), options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->plan.program);
  EXPECT_NE(result->no_program.find("--time-limit=6s"), std::string::npos) << result->no_program;
}

TEST(Limits, ASearchThatItsCallerStopsEndsWithItsBest) {
  const Topology topology = LoadTopology("fat-tree:k=4").value();
  const Collective allreduce = Of(CollectiveKind::kAllreduce, topology);
  for (const char* const engine : {"auto", "greedy"}) {
    PlanOptions options{.engine = engine};
    const int64_t whole_ps = MakePlan(topology, allreduce, options).value().simulation.time_ps;
    Interrupt interrupt;
    interrupt.Set();
    options.deadline = Deadline().With(interrupt);
    const StatusOr<PlanResult> result = MakePlan(topology, allreduce, options);
    ASSERT_TRUE(result.ok()) << engine << ": " << result.status().message();
    EXPECT_GT(result->plan.schedule.size(), 0) << engine;
    EXPECT_GE(result->simulation.time_ps, whole_ps) << engine;
  }
}

// Nothing is compared once Ctrl-C has come, and sizes that have rows keep them; without any row it is an
// error.
TEST(Limits, AnInterruptedComparisonKeepsTheSizesBefore) {
  const Topology ring = LoadTopology("ring:4").value(), mesh = LoadTopology("full-mesh:4").value();
  const Collective allgather = Of(CollectiveKind::kAllgather, ring);
  const ComparedMachine machines[] = {{"ring:4", &ring, &allgather}, {"full-mesh:4", &mesh, &allgather}};
  for (const bool several : {false, true}) {
    Interrupt interrupt;
    PlanOptions options;
    options.deadline = Deadline().With(interrupt);
    const OnSize on_size = [&](const Comparison&) {
      interrupt.Set();
      return OkStatus();
    };
    const auto compare = [&] {
      return several ? CompareMachines(machines, {"ring"}, {1024, 4096}, options, on_size)
                     : Compare(ring, allgather, {"ring"}, {1024, 4096}, options, on_size);
    };
    const StatusOr<Comparison> made = compare();
    ASSERT_TRUE(made.ok()) << made.status().message();
    for (const PlanTime& timed : made->times) EXPECT_EQ(timed.size_bytes, 1024);
    EXPECT_EQ(made->skipped, std::vector<std::string>{"4KiB and what follows: interrupted"});
    EXPECT_EQ(compare().status().code(), StatusCode::kLimit);
  }
}

TEST(Limits, ASearchThatIsOutOfTimeSaysSo) {
  const Topology topology = LoadTopology("torus:4x4").value();
  const Collective alltoall = Of(CollectiveKind::kAlltoall, topology);
  PlanOptions options;
  options.deadline = Deadline(0);
  const StatusOr<PlanResult> result = MakePlan(topology, alltoall, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kLimit);
  EXPECT_NE(result.status().message().find("--time-limit=0s passed"), std::string::npos)
      << result.status().message();
}

TEST(Limits, RunKeepsTheSizesBeforeTheDeadline) {
  const Topology topology = LoadTopology("ring:3").value();
  PlanOptions options{.engine = "ring", .lower = true};
  const std::string file = ::testing::TempDir() + "/limits_test.plan.json";
  const PlanResult planned = MakePlan(topology, Of(CollectiveKind::kAllgather, topology), options).value();
  ASSERT_EQ(WritePlan(planned.plan, file), OkStatus());
  RunSettings settings;
  settings.deadline = Deadline(2);
  std::vector<int64_t> sizes;
  std::string why;
  const RunShow show = {.begin = [](const RunResult&) { return OkStatus(); },
                        .size =
                            [&](const RunResult& size) {
                              sizes.push_back(size.rows.front().size_bytes);
                              while (!settings.deadline()) {
                              }
                              return OkStatus();
                            },
                        .end =
                            [&](const std::string& note) {
                              why = note;
                              return OkStatus();
                            }};
  EXPECT_EQ(RunSizes(file, {1008, 4096}, settings, show), OkStatus());
  EXPECT_EQ(sizes, std::vector<int64_t>{1008});
  EXPECT_EQ(why, "--time-limit=2s passed; 4KiB and what follows did not run");
  settings.deadline = Deadline(0);
  EXPECT_EQ(RunSizes(file, {1008}, settings, show),
            LimitReached("--time-limit=0s passed before anything ran"));
}

// The first size waits until the deadline has passed.
TEST(Limits, CompareKeepsTheSizesBeforeTheDeadline) {
  const Topology topology = LoadTopology("ring:3").value();
  const Collective allgather = Of(CollectiveKind::kAllgather, topology);
  PlanOptions options;
  options.deadline = Deadline(2);
  int32_t shown = 0;
  const auto wait = [&](const Comparison& of_size) {
    EXPECT_EQ(of_size.times.front().size_bytes, 1008);
    ++shown;
    while (!options.deadline()) {
    }
    return OkStatus();
  };
  const StatusOr<Comparison> comparison =
      Compare(topology, allgather, {"ring"}, {1024, 4096, 16384}, options, wait);
  ASSERT_TRUE(comparison.ok()) << comparison.status().message();
  EXPECT_EQ(shown, 1);
  EXPECT_EQ(comparison->times.size(), 1u);
  EXPECT_EQ(comparison->skipped, std::vector<std::string>{"4KiB and what follows: --time-limit=2s passed"});
}

}  // namespace
}  // namespace xccl
