// One plan has one time: its engine, `plan`, `compare`, `simulate` on the plan's file, and the end of its
// trace give the same picosecond.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/plan.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/trace.h"
#include "pipeline/compare.h"
#include "pipeline/pipeline.h"
#include "pipeline/predict.h"
#include "synth/engines.h"
#include "tests/testing/library.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int32_t kMostRanks = 16;  // larger machines take too long
constexpr int32_t kFew = 8;

Collective Make(CollectiveKind kind, int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(ranks);
  if (kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce) spec.root = Rank(0);
  return Collective::Create(std::move(spec)).value();
}

// As a file of the plan gives it back.
Plan Kept(const Plan& plan) {
  const std::string file = testing::TempDir() + "/same_time.plan.json";
  EXPECT_TRUE(WritePlan(plan, file).ok());
  return ReadPlanUnverified(file).value();
}

int64_t PredictedPs(const Plan& plan, int64_t size_bytes, TimeModel model, PlanLevel level,
                    const MachineModel* machine = nullptr) {
  return Predict(plan, std::vector{size_bytes}, model, level, machine).value()[0].time_ps;
}

void CheckEngine(const Topology& topology, const Collective& collective, const Engine& engine,
                 int64_t size_bytes, TimeModel model) {
  PlanOptions options;
  options.engine = std::string(engine.name);
  options.request.size_bytes = size_bytes;
  options.request.model = model;
  const StatusOr<PlanResult> made = MakePlan(topology, collective, options);
  if (!made.ok()) return;  // does not serve this request
  const int64_t time_ps = made->simulation.time_ps;
  const Plan kept = Kept(made->plan);
  EXPECT_EQ(PredictedPs(kept, size_bytes, model, PlanLevel::kSchedule), time_ps);
  const SimulateOptions timing{.size_bytes = size_bytes, .model = model};
  const StatusOr<ScheduleTrace> trace =
      TraceSchedule(made->plan.schedule, made->plan.collective, topology, timing, {.most_slices = 0});
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->simulation.time_ps, time_ps);
  if (!trace->critical_path.pieces.empty()) {
    EXPECT_EQ(trace->critical_path.pieces.back().end_ps, time_ps);
  }
  if (engine.asks_others || size_bytes > 8 << 10) return;  // would plan all over again
  const StatusOr<Comparison> compared =
      Compare(topology, collective, {std::string(engine.name)}, {size_bytes}, options);
  ASSERT_TRUE(compared.ok()) << compared.status().message();
  EXPECT_EQ(compared->times[0].time_ps, time_ps);
}

class SameTime : public testing::TestWithParam<std::string> {};

TEST_P(SameTime, OfEveryEnginesSchedules) {
  const Topology topology = LoadTopology(GetParam()).value();
  if (topology.num_ranks() > kMostRanks) GTEST_SKIP() << topology.num_ranks() << " ranks take too long";
  for (CollectiveKind kind : {CollectiveKind::kAllreduce, CollectiveKind::kAllgather,
                              CollectiveKind::kAlltoall, CollectiveKind::kBroadcast}) {
    const Collective collective = Make(kind, topology.num_ranks());
    for (const Engine& engine : AllEngines()) {
      if (engine.searches_long || !engine.MayServe(kind)) continue;
      // On larger machines the two that most is said of.
      if (topology.num_ranks() > kFew && kind != CollectiveKind::kAllreduce &&
          kind != CollectiveKind::kAllgather)
        continue;
      struct Case {
        int64_t size_bytes;
        TimeModel model;
      };
      for (const auto& [size_bytes, model] : {Case{8 << 10, TimeModel::kPipelined},
                                              {8 << 10, TimeModel::kBlocking},
                                              {16 << 20, TimeModel::kPipelined}}) {
        SCOPED_TRACE(std::string(engine.name) + " " + collective.name() + " " + FormatSize(size_bytes) + " " +
                     std::string(ToString(model)));
        CheckEngine(topology, collective, engine, size_bytes, model);
      }
    }
  }
}

// A program's time is that of its file as well.
TEST_P(SameTime, OfProgramsOfAuto) {
  const Topology topology = LoadTopology(GetParam()).value();
  if (topology.num_ranks() > kMostRanks) GTEST_SKIP() << topology.num_ranks() << " ranks take too long";
  for (const int64_t size_bytes : {int64_t{8} << 10, int64_t{4} << 20}) {
    SCOPED_TRACE(size_bytes);
    PlanOptions options;
    options.request.size_bytes = size_bytes;
    options.lower = true;
    options.machine_of_topology = true;
    const PlanResult made =
        MakePlan(topology, Make(CollectiveKind::kAllreduce, topology.num_ranks()), options).value();
    ASSERT_TRUE(made.program_time_ps);
    const PlanOptions on = OnMachineOf(topology, options);
    const MachineModel* const machine = on.machine ? &*on.machine : nullptr;
    const Plan kept = Kept(made.plan);
    EXPECT_EQ(PredictedPs(kept, size_bytes, TimeModel::kPipelined, PlanLevel::kSchedule),
              made.simulation.time_ps);
    EXPECT_EQ(PredictedPs(kept, size_bytes, TimeModel::kPipelined, PlanLevel::kProgram, machine),
              *made.program_time_ps);
  }
}

// Extrapolation comes near the time that all segments take (docs/ir.md, Extrapolation).
TEST_P(SameTime, IsNearThatOfEverySegment) {
  const Topology topology = LoadTopology(GetParam()).value();
  if (topology.num_ranks() > kFew) GTEST_SKIP() << topology.num_ranks() << " ranks take too long";
  for (CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kBroadcast}) {
    const Collective collective = Make(kind, topology.num_ranks());
    for (const Engine& engine : AllEngines()) {
      if (engine.searches_long || engine.asks_others || !engine.MayServe(kind)) continue;
      SCOPED_TRACE(std::string(engine.name) + " " + collective.name());
      PlanOptions options;
      options.engine = std::string(engine.name);
      options.request.size_bytes = 128 << 20;
      const StatusOr<PlanResult> made = MakePlan(topology, collective, options);
      if (!made.ok()) continue;
      const SimulateOptions all{.size_bytes = 128 << 20, .extrapolate = false};
      const auto every =
          static_cast<double>(Simulate(made->plan.schedule, made->plan.collective, topology, all).time_ps);
      EXPECT_NEAR(static_cast<double>(made->simulation.time_ps), every, every * 5e-3);
    }
  }
}

std::vector<std::string> Machines() {
  std::vector<std::string> machines = DistinctMachines();
  for (const char* name : {"torus:4x4", "mesh:2x3", "hypercube:3", "leaf-spine:2x2x2", "fat-tree:k=4"})
    machines.emplace_back(name);
  return machines;
}

INSTANTIATE_TEST_SUITE_P(, SameTime, testing::ValuesIn(Machines()), [](const auto& machine) {
  std::string name = machine.param;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace xccl
