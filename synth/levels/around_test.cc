// Plans of whole machines led around damage: the compressed form beside the plain one, and refusals.
#include "synth/levels/around.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/bounds/bound.h"
#include "ir/damaged.h"
#include "ir/lower/lower_ranks.h"
#include "ir/plan.h"
#include "ir/simulate/simulate.h"
#include "ir/slowed.h"
#include "ir/translated.h"
#include "ir/verify/verify_plan.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"
#include "synth/levels/check_part.h"
#include "synth/levels/damaged_machine.h"
#include "synth/levels/levels.h"
#include "synth/levels/levels_engine.h"
#include "synth/levels/send.h"
#include "topologies/failures.h"
#include "topologies/load/load.h"
#include "topologies/whole.h"

namespace xccl {
namespace {

using ::testing::HasSubstr;
using testing::SpecOf;

Topology Load(const std::string& name, const std::vector<std::string>& lost,
              const std::vector<std::string>& slow = {}) {
  LoadOptions options;
  options.without_links = lost;
  options.degrades = slow;
  return LoadTopology(name, options).value();
}

Collective All(CollectiveKind kind, const Topology& topology) {
  return *Collective::Create(SpecOf(kind, AllRanks(topology.num_ranks())));
}

struct Damaged : DamagedMachine {
  using DamagedMachine::DamagedMachine;

  // The compressed plan of the whole machine, led around the damage.
  Schedule Plan(const Collective& collective, int64_t bytes) const {
    const LevelFinder finder(whole, group);
    const Levels levels = *finder.Make(finder.Ends(1 << 30), "levels");
    Schedule schedule = SendOverLevels(levels, whole, group, collective, bytes);
    EXPECT_EQ(LeadAround(schedule, missing, machine, whole, group, collective, bytes, "levels"), OkStatus());
    return schedule;
  }
};

struct Row {
  const char* topology;
  std::vector<std::string> lost, slow;
};
const Row kRows[] = {
    {"leaf-spine:4x4x4", {"leaf0<->spine1"}, {}},
    {"leaf-spine:4x4x4", {"leaf0->spine1", "leaf2->spine3"}, {}},
    {"leaf-spine:8x4x4", {"leaf0<->spine1", "leaf1<->spine1", "leaf3<->spine0"}, {}},
    {"fat-tree:k=6", {"edge9<->aggregation10", "aggregation7<->core4"}, {}},
    {"leaf-spine:8x4x4", {"leaf5<->spine2"}, {"leaf1->spine0=0.25"}},
    {"leaf-spine:4x4x4", {}, {"leaf0->spine1=0.1"}},
};

TEST(Around, CompressedPlansAreThoseThatAreWrittenOut) {
  for (const Row& row : kRows) {
    const Damaged damaged(Load(row.topology, row.lost, row.slow));
    ASSERT_TRUE(damaged.group.IsTransitive());
    for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kAlltoall}) {
      const Collective collective = All(kind, damaged.machine);
      const int64_t bytes = int64_t{damaged.machine.num_ranks()} << 20;
      const Schedule compressed = damaged.Plan(collective, bytes);
      SCOPED_TRACE(fmt::format("{}, {}, {} detours", damaged.machine.name(), collective.name(),
                               compressed.detours.size()));
      EXPECT_FALSE(compressed.detours.empty());
      const Schedule plain = *Expand(compressed, collective, damaged.machine);
      EXPECT_TRUE(plain.missing.empty() && plain.detours.empty());
      for (const Schedule* schedule : {&compressed, &plain})
        EXPECT_EQ(ToStatus(VerifySchedule(*schedule, collective, damaged.machine)), OkStatus());
      // A simulation of the plain form is exact. That of the columns takes all translates to be as slow as
      // the slowest, and leaves out how detours hold up other data.
      SimulateOptions options{.size_bytes = bytes};
      const int64_t exact_ps = Simulate(plain, collective, damaged.machine, options).time_ps;
      EXPECT_EQ(Simulate(compressed, collective, damaged.machine, options).time_ps, exact_ps);
      const SlowedMachine slowed =
          SlowedOf(compressed, CollectiveSizes(collective, bytes), damaged.machine,
                   Translations::Create(compressed, collective, damaged.machine).value());
      Schedule whole = compressed;
      whole.missing = {};
      whole.detours.clear();
      whole = *Expand(whole, collective, damaged.whole);
      const int64_t slow_ps =
          std::max(slowed.least_ps, Simulate(whole, collective, slowed.topology, options).time_ps);
      EXPECT_NEAR(static_cast<double>(slow_ps) / static_cast<double>(exact_ps), 1, 0.15);
    }
  }
}

TEST(Around, PlansOfDamagedClustersAreRight) {
  for (const Row& row : kRows) {
    const Topology machine = Load(row.topology, row.lost, row.slow);
    for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
                                      CollectiveKind::kAllreduce, CollectiveKind::kAlltoall}) {
      const Collective collective = All(kind, machine);
      SynthesisRequest request;
      request.topology = &machine;
      request.collective = &collective;
      request.size_bytes = 1 << 26;
      const StatusOr<Synthesis> made = LevelsEngine().Synthesize(request);
      ASSERT_TRUE(made.ok()) << made.status().message();
      EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, machine)), OkStatus());
      const Bound bound = *LowerBound(machine, collective, request.size_bytes, request.model);
      const Simulation simulation =
          Simulate(made->schedule, made->collective, machine, {.size_bytes = request.size_bytes});
      EXPECT_LE(static_cast<double>(simulation.time_ps), 1.35 * static_cast<double>(bound.bound_ps))
          << row.topology << ", " << collective.name();
    }
  }
}

// Detours of a plan: what a wrong file can say of them.
TEST(Around, WrongDetoursAreRefused) {
  const Damaged damaged(Load("leaf-spine:4x4x4", {"leaf0<->spine1"}));
  const Collective collective = All(CollectiveKind::kAllgather, damaged.machine);
  const Schedule right = damaged.Plan(collective, 1 << 20);
  const auto refusal = [&](const std::function<void(Schedule&)>& edit) {
    Schedule wrong = right;
    edit(wrong);
    const std::vector<Violation> found = VerifySchedule(wrong, collective, damaged.machine);
    return found.empty() ? std::string() : ToString(found.front());
  };
  const LinkId lost(damaged.machine.num_links());
  EXPECT_EQ(refusal([](Schedule&) {}), "");
  EXPECT_THAT(refusal([](Schedule& s) { s.detours.clear(); }), HasSubstr("[S8] path from rank"));
  EXPECT_THAT(refusal([](Schedule& s) { s.detours.clear(); }), HasSubstr("which is lost; expected a detour"));
  EXPECT_EQ(refusal([](Schedule& s) { s.detours[0].by.clear(); }), "[S8] detour 0: has no links");
  EXPECT_EQ(refusal([](Schedule& s) { s.detours[0].links = s.detours[0].by; }),
            "[S8] detour 0: the row has no damaged link");
  EXPECT_EQ(refusal([&](Schedule& s) { s.detours[0].by = {lost}; }),
            fmt::format("[S8] detour 0: has link {}; expected links 0..{}", lost.value, lost.value - 1));
  EXPECT_THAT(refusal([](Schedule& s) { s.detours[0].by.pop_back(); }),
              HasSubstr("[S8] detour 0: leads from"));
  EXPECT_EQ(refusal([](Schedule& s) { std::ranges::reverse(s.detours[0].by); }).substr(0, 25),
            "[S8] detour 0: has link 3");
  EXPECT_EQ(refusal([](Schedule& s) { s.missing = {}; }),
            "[S8] detours: nothing is missing; expected a lost or slow link");
  EXPECT_EQ(refusal([](Schedule& s) {
              s.missing.slow = {{LinkId(999), 1}};
            }),
            fmt::format("[S8] missing: slow link 999; links are 0..{}", lost.value - 1));
  EXPECT_THAT(refusal([](Schedule& s) { s.missing.lost.pop_back(); }), HasSubstr("[S7] generator"));
}

TEST(Around, RanksWithoutAnotherWayAreNamed) {
  const Topology machine = Load("leaf-spine:4x4x4", {"0->leaf0"});
  const Collective collective = All(CollectiveKind::kAllgather, machine);
  SynthesisRequest request;
  request.topology = &machine;
  request.collective = &collective;
  request.size_bytes = 1 << 20;
  EXPECT_THAT(std::string(LevelsEngine().Synthesize(request).status().message()),
              HasSubstr("only through other gpus without link"));
}

// The bound for 4,096 ranks is that of the whole machine, and of cuts around the damage.
TEST(Around, BoundsOfLargeDamagedMachinesAreQuick) {
  const Topology whole = Load("leaf-spine:64x8x64", {});
  const Topology machine = Load("leaf-spine:64x8x64", {"leaf7<->spine1", "leaf7<->spine2"});
  const Collective collective = All(CollectiveKind::kAlltoall, machine);
  const int64_t bytes = 1 << 30;
  const auto bound = [&](const Topology& topology) {
    return static_cast<double>(LowerBound(topology, collective, bytes, TimeModel::kPipelined)->bound_ps);
  };
  EXPECT_NEAR(bound(machine) / bound(whole), 8.0 / 6, 0.01);
  EXPECT_EQ(CheckReachable(machine, collective), OkStatus());
}

// One rank's part has the detours on its connections.
TEST(Around, RanksAreLoweredAlone) {
  for (const Row& row : kRows) {
    const Damaged made(Load(row.topology, row.lost, row.slow));
    for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kAlltoall}) {
      const Collective collective = All(kind, made.machine);
      Plan plan{made.machine, collective, made.Plan(collective, 1 << 20), std::nullopt, {}};
      SCOPED_TRACE(fmt::format("{}, {}", made.machine.name(), collective.name()));
      ASSERT_TRUE(IsOfDamaged(plan.schedule));
      const StatusOr<RankLowering> lowering =
          RankLowering::Create(plan.schedule, collective, made.machine, 1 << 20);
      ASSERT_TRUE(lowering.ok()) << lowering.status().message();
      plan.program = LoweredProgram{collective, lowering->ProgramOf(AllRanks(made.machine.num_ranks()))};
      ASSERT_EQ(ToStatus(VerifyPlan(plan)).message(), "");
      CheckPart(*lowering, plan.program->program, Rank(5));
    }
  }
}

}  // namespace
}  // namespace xccl
