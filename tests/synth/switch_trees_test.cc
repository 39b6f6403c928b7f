// multicast and in-network: plans that verify, times against the limits of ports and trees, programs,
// refusals.
#include "synth/switches/switch_trees.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/analysis/bitwise_same.h"
#include "ir/bounds/bound.h"
#include "ir/lower/testing/checked.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulate_program.h"
#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/synthesizer.h"
#include "synth/common/test_machines.h"
#include "synth/engines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

using enum CollectiveKind;
using testing::SpecOf;

constexpr CollectiveKind kServed[] = {kAllreduce,      kAllgather, kAllgatherv, kReduceScatter,
                                      kReduceScatterv, kBroadcast, kReduce,     kBarrier};

Topology Load(const char* machine) { return LoadTopology(machine).value(); }

Collective All(CollectiveKind kind, const Topology& topology) {
  const std::vector<Rank> ranks = AllRanks(topology.num_ranks());
  return Collective::Create(SpecOf(kind, ranks)).value();
}

StatusOr<Synthesis> Plan(const char* engine, const Topology& topology, const Collective& collective,
                         std::optional<int32_t> chunks = {}, int64_t size_bytes = 64 << 20) {
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  request.size_bytes = size_bytes;
  request.limits.chunks = chunks;
  const Engine& synthesizer = *FindEngine(engine).value();
  XCCL_RETURN_IF_ERROR(synthesizer.Serves(request));
  return synthesizer.Synthesize(request);
}

int64_t TimePs(const Synthesis& made, const Topology& topology, int64_t size_bytes = 64 << 20) {
  return Simulate(made.schedule, made.collective, topology, {.size_bytes = size_bytes}).time_ps;
}

std::string FirstOf(const std::vector<Violation>& violations) {
  return violations.empty() ? "" : ToString(violations.front());
}

TEST(SwitchTrees, EveryPlanVerifiesAndSoDoesItsProgram) {
  struct Case {
    const char *engine, *machine;
  };
  constexpr Case kCases[] = {
      {"multicast", "nvswitch:8@multicast=true,reduce=true"},
      {"multicast", "nvswitch:3@multicast=true,reduce=true"},
      {"multicast", "nvswitch:1@multicast=true,reduce=true"},
      {"in-network", "nvswitch:4@multicast=true,reduce=true"},
      {"in-network", "fat-tree:k=4@multicast=true,reduce=true"},
      {"in-network", "rail-2"},
  };
  for (const Case& c : kCases) {
    const Topology topology = Load(c.machine);
    for (CollectiveKind kind : kServed) {
      for (std::optional<int32_t> chunks : {std::optional<int32_t>(), std::optional(3)}) {
        SCOPED_TRACE(fmt::format("{} of {} on {}, chunks {}", c.engine, ToString(kind), c.machine,
                                 chunks.value_or(0)));
        const StatusOr<Synthesis> made = Plan(c.engine, topology, All(kind, topology), chunks, 1 << 20);
        ASSERT_TRUE(made.ok()) << made.status().message();
        ASSERT_EQ(FirstOf(VerifySchedule(made->schedule, made->collective, topology)), "");
        EXPECT_TRUE(IsBitwiseSame(made->schedule, made->collective, topology));
        if (chunks && kind != kBarrier) {
          EXPECT_EQ(made->collective.ChunksOf(PartId(0)), *chunks);
        }
        if (!chunks || topology.num_ranks() > 8) continue;
        const StatusOr<Program> program =
            LowerChecked(made->schedule, made->collective, topology, {.size_bytes = 1 << 20});
        ASSERT_TRUE(program.ok()) << program.status().message();
        EXPECT_EQ(FirstOf(VerifyProgram(*program, made->collective, topology)), "");
      }
    }
  }
}

// In an allreduce a port carries every byte once in each direction; one switch needs no more, nor does the
// program.
TEST(SwitchTrees, OnePortTimesSuffice) {
  const Topology topology = Load("nvswitch:8@multicast=true,reduce=true");
  const double port_ps = 64.0 * (1 << 20) / 450e9 * 1e12;
  struct Case {
    CollectiveKind kind;
    double most;  // in units of S over one port
  };
  for (const Case& c : {Case{kAllreduce, 1.07}, Case{kBroadcast, 1.02}, Case{kReduce, 1.02},
                        Case{kAllgather, 0.92}, Case{kReduceScatter, 0.92}}) {
    const Synthesis made = Plan("multicast", topology, All(c.kind, topology)).value();
    EXPECT_LE(static_cast<double>(TimePs(made, topology)), c.most * port_ps) << ToString(c.kind);
    const LoweredProgram lowered = LowerFoldedChecked(made.schedule, made.collective, topology).value();
    EXPECT_FALSE(lowered.program.groups.empty());
    const int64_t program_ps =
        SimulateProgram(lowered.program, lowered.collective, topology, {}).value().time_ps;
    EXPECT_LE(program_ps, TimePs(made, topology) * 21 / 20) << ToString(c.kind);
  }
}

// Trees over a fat tree whose switches reduce need only what its ports allow; ranks alone need almost twice
// that.
TEST(SwitchTrees, InNetworkUsesTheWholeTree) {
  const Topology topology = Load("fat-tree:k=4@multicast=true,reduce=true");
  const Collective allreduce = All(kAllreduce, topology);
  const int64_t own = TimePs(Plan("in-network", topology, allreduce).value(), topology);
  const Bound bound = LowerBound(topology, allreduce, 64 << 20, TimeModel::kPipelined).value();
  EXPECT_LE(static_cast<double>(own), 1.15 * static_cast<double>(bound.bound_ps));
  EXPECT_LE(static_cast<double>(own),
            0.7 * static_cast<double>(TimePs(Plan("ring", topology, allreduce).value(), topology)));
}

TEST(SwitchTrees, Refusals) {
  struct Case {
    const char *engine, *machine;
    CollectiveKind kind;
    const char* message;
  };
  constexpr Case kCases[] = {
      {"multicast", "nvswitch:8", kAllgather,
       "multicast: no switch of nvswitch:8 joins all members and multicasts; hint: --engine=auto"},
      {"multicast", "nvswitch:8@multicast=true", kAllreduce,
       "multicast: no switch of nvswitch:8@multicast=true joins all members and multicasts and reduces; "
       "hint: "
       "--engine=auto"},
      {"multicast", "rail-2", kReduce,
       "multicast: no switch of rail-2 joins all members and reduces; hint: --engine=auto"},
      {"in-network", "fat-tree:k=4", kAllreduce,
       "in-network: no switch of fat-tree:k=4 multicasts and reduces; hint: --engine=auto"},
      {"in-network", "nvswitch:8@multicast=true,reduce=true", kAlltoall,
       "in-network: does not serve alltoall; it serves allreduce, allgather, allgatherv, reduce_scatter, "
       "reduce_scatterv, broadcast, reduce, barrier; hint: --engine=auto"},
  };
  for (const Case& c : kCases) {
    const Topology topology = Load(c.machine);
    EXPECT_EQ(Plan(c.engine, topology, All(c.kind, topology)).status().message(), c.message);
  }
}

TEST(SwitchTrees, AutoConsidersThem) {
  const Topology topology = Load("nvswitch:8@multicast=true,reduce=true");
  const Synthesis made = Plan("auto", topology, All(kAllgather, topology)).value();
  const Bound bound =
      LowerBound(topology, All(kAllgather, topology), 64 << 20, TimeModel::kPipelined).value();
  EXPECT_EQ(made.engine, "multicast");
  EXPECT_LE(static_cast<double>(TimePs(made, topology)), 1.01 * static_cast<double>(bound.bound_ps));
}

}  // namespace
}  // namespace xccl
