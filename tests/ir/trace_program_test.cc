#include "ir/simulate/trace_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/program_index.h"
#include "ir/known_machines.h"
#include "ir/lower/testing/checked.h"
#include "ir/simulate/simulate_program.h"
#include "ir/testing/programs.h"
#include "ir/time_model.h"

namespace xccl {
namespace {

constexpr int64_t kMegabyte = 1'000'000;
constexpr int64_t kUs = 1'000'000;

// Checks the properties that every trace has.
void Check(const ProgramTrace& trace, const Program& program, const Collective& collective,
           const Topology& topology, const SimulateOptions& options) {
  const int64_t time_ps = trace.simulation.time_ps;
  EXPECT_EQ(time_ps, SimulateProgram(program, collective, topology, options).value().time_ps);
  const int64_t launch_ps = options.machine != nullptr ? options.machine->launch_ps : 0;
  int64_t at = 0;
  for (const PathPiece& piece : trace.critical_path.pieces) {
    EXPECT_EQ(piece.start_ps, at);
    EXPECT_LT(piece.start_ps, piece.end_ps);
    at = piece.end_ps;
  }
  EXPECT_EQ(at, time_ps);
  int64_t waits_ps = 0;
  for (const TracedInstruction& row : trace.instructions) {
    EXPECT_LE(row.start_ps, row.end_ps);
    EXPECT_LE(row.end_ps, time_ps);
    for (size_t w = 0; w < kNumProgramWaits; ++w)
      waits_ps += w == static_cast<size_t>(ProgramWait::kLink) ? 0 : row.waits_ps[w];
  }
  for (const int64_t busy_ps : trace.link_busy_ps) EXPECT_LE(busy_ps, time_ps - launch_ps);
  if (trace.ran_passes < trace.passes) {
    EXPECT_TRUE(trace.slices.empty());
    return;
  }
  ASSERT_FALSE(trace.slices.empty());
  for (const TracedPass& slice : trace.slices) {
    EXPECT_LE(slice.reached_ps, slice.start_ps);
    EXPECT_LE(slice.start_ps, slice.end_ps);
    EXPECT_LE(slice.end_ps, time_ps);
    EXPECT_EQ(slice.waited_for == ProgramWait::kNothing, slice.reached_ps == slice.start_ps);
    waits_ps -= slice.start_ps - slice.reached_ps;
  }
  EXPECT_EQ(waits_ps, 0);
  std::vector<int64_t> busy(trace.link_busy_ps.size(), 0);
  for (const TracedProgramHop& hop : trace.hops) {
    EXPECT_LE(hop.end_ps, time_ps);
    busy[hop.link.index()] += hop.end_ps - hop.start_ps;
  }
  EXPECT_EQ(busy, trace.link_busy_ps);
}

ProgramTrace Traced(const Program& program, const Collective& collective, const Topology& topology,
                    const SimulateOptions& options) {
  const StatusOr<ProgramTrace> trace = TraceProgram(program, collective, topology, options);
  EXPECT_TRUE(trace.ok()) << trace.status().message();
  if (!trace.ok()) return {};
  Check(*trace, program, collective, topology, options);
  return *trace;
}

// A machine on which everything takes time, and threadblocks are slower than links.
MachineModel Slow() {
  MachineModel machine;
  machine.launch_ps = 3 * kUs;
  machine.hand_off_ps = 250'000;
  machine.protocols[0] = {.hop_ps = 300'000, .message_ps = 100'000, .block_bytes_per_s = 20'000'000'000};
  return machine;
}

TEST(TraceProgram, IsThatOfTheSimulation) {
  const MachineModel slow = Slow(), hopper = HopperModel();
  const MachineModel* const machines[] = {nullptr, &slow, &hopper};
  int32_t cases = 0;
  for (const Topology& topology : {FullMesh(4), OneSwitch(3)}) {
    for (CollectiveKind kind : {CollectiveKind::kAllreduce, CollectiveKind::kAllgather,
                                CollectiveKind::kBroadcast, CollectiveKind::kAlltoall}) {
      const Collective collective = MakeCollective(kind, topology.num_ranks());
      for (Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
        const std::optional<Schedule> schedule = HandSchedule(algorithm, collective, topology);
        if (!schedule) continue;
        Program program = LowerChecked(*schedule, collective, topology).value();
        for (int32_t instances : {1, 3}) {
          program.instances = instances;
          program.segment_bytes = kMegabyte / 16;
          for (const MachineModel* machine : machines)
            for (TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
              SCOPED_TRACE(std::string(ToString(algorithm)) + " " + std::string(ToString(kind)) + " on " +
                           topology.name() + " " + std::to_string(instances));
              Traced(program, collective, topology,
                     {.size_bytes = kMegabyte, .model = model, .machine = machine});
              ++cases;
            }
        }
      }
    }
  }
  EXPECT_GT(cases, 100);
}

// A switch that copies and adds: messages of groups branch and join.
TEST(TraceProgram, FollowsMessagesThroughSwitches) {
  TopologySpec spec = OneSwitch(3).spec();
  for (Node& node : spec.nodes) node.multicast = node.reduce = node.kind == NodeKind::kSwitch;
  const Topology topology = Topology::Create(spec).value();
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 3);
  Schedule schedule;
  schedule.num_chunks = 1;
  const auto up = [](int32_t r) { return LinkId(2 * r); };
  const auto down = [](int32_t r) { return LinkId(2 * r + 1); };
  schedule.Add(ChunkId(0), 1, Rank(1), Rank(0), std::vector{up(1), up(2), down(0)}, TransferOp::kReduce, 0);
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), std::vector{up(0), down(1), down(2)}, TransferOp::kCopy, 1);
  Program program = LowerChecked(schedule, collective, topology).value();
  program.segment_bytes = 0;  // one pass
  ASSERT_EQ(program.groups.size(), 2u);
  const MachineModel slow = Slow();
  for (const MachineModel* machine : {static_cast<const MachineModel*>(nullptr), &slow}) {
    const ProgramTrace trace =
        Traced(program, collective, topology, {.size_bytes = kMegabyte, .machine = machine});
    EXPECT_EQ(trace.hops.size(), 6u);
  }
}

// A chain of three ranks with two slots: passes 2 and later wait for a slot, or for the link.
TEST(TraceProgram, SaysWhatInstructionsWaitFor) {
  const Topology topology = FullMesh(3);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kBroadcast;
  spec.ranks = {Rank(0), Rank(1), Rank(2)};
  spec.root = Rank(0);
  const Collective collective = Collective::Create(spec).value();
  Program program =
      LowerChecked(*HandSchedule(Algorithm::kRing, collective, topology), collective, topology).value();
  program.segment_bytes = kMegabyte / 10;
  program.slots = 2;
  program.instances = 1;
  const ProgramTrace trace = Traced(program, collective, topology, {.size_bytes = kMegabyte});
  const ProgramIndex index(program);
  const auto row = [&](Opcode op) {
    int32_t node = 0;
    while (index.instruction(node).op != op) ++node;
    return trace.instructions[static_cast<size_t>(node)];
  };
  const auto waited = [&](Opcode op, ProgramWait wait) {
    return row(op).waits_ps[static_cast<size_t>(wait)];
  };
  // Ten passes, 2 us each, 4.5 us for two of them while both slots are taken.
  EXPECT_EQ(trace.simulation.time_ps, 25 * kUs);
  EXPECT_EQ(row(Opcode::kSend).busy_ps, 20 * kUs);
  EXPECT_EQ(waited(Opcode::kSend, ProgramWait::kSlot), 2 * kUs);
  EXPECT_EQ(waited(Opcode::kSend, ProgramWait::kMessage), 0);
  EXPECT_GT(waited(Opcode::kRecvCopySend, ProgramWait::kMessage), 0);
  EXPECT_GT(waited(Opcode::kRecv, ProgramWait::kMessage), 0);
  const std::vector<PathShare> shares = SharesOf(trace.critical_path);
  EXPECT_EQ(shares.front().kind, PathKind::kTransfer);
}

TEST(TraceProgram, NamesTheThreadblockThatIsSlow) {
  const Topology topology = FullMesh(2);
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 2);
  const Program program =
      LowerChecked(*HandSchedule(Algorithm::kDirect, collective, topology), collective, topology).value();
  const MachineModel slow = Slow();
  const ProgramTrace trace =
      Traced(program, collective, topology, {.size_bytes = kMegabyte, .machine = &slow});
  // The link takes 20 us, either threadblock 50 us and the message 0.1 us.
  const std::vector<PathPiece> expected = {
      {PathKind::kLaunch, 0, 3 * kUs, {}, {}, {}},
      {PathKind::kThreadblock, 3 * kUs, 53'100'000, {}, {}, 0},
      {PathKind::kLatency, 53'100'000, 53'600'000, LinkId(0), {}, {}},
      {PathKind::kHop, 53'600'000, 53'900'000, {}, {}, 0},
      {PathKind::kThreadblock, 53'900'000, 104'000'000, {}, {}, 1},
  };
  // The root is rank 1.
  ASSERT_EQ(trace.critical_path.pieces.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(trace.critical_path.pieces[i].kind, expected[i].kind);
    EXPECT_EQ(trace.critical_path.pieces[i].start_ps, expected[i].start_ps);
    EXPECT_EQ(trace.critical_path.pieces[i].end_ps, expected[i].end_ps);
  }
  EXPECT_NE(trace.critical_path.pieces[1].block, trace.critical_path.pieces[4].block);
}

TEST(TraceProgram, EveryPassIsRunWhereThatIsCheap) {
  const Topology topology = FullMesh(4);
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 4);
  Program program =
      LowerChecked(*HandSchedule(Algorithm::kRing, collective, topology), collective, topology).value();
  program.segment_bytes = kMegabyte * 1000 / 100'000;
  const StatusOr<ProgramTrace> trace =
      TraceProgram(program, collective, topology, {.size_bytes = kMegabyte * 1000});
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->passes, 100'000);
  EXPECT_EQ(trace->ran_passes, trace->passes);
}

TEST(TraceProgram, ManyPassesAreExtrapolatedAsTheSimulationIs) {
  const Topology topology = FullMesh(4);
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 4);
  Program program =
      LowerChecked(*HandSchedule(Algorithm::kRing, collective, topology), collective, topology).value();
  program.slots = 16;
  program.segment_bytes = kMegabyte * 1000 / 1'250'000;
  const ProgramTrace trace = Traced(program, collective, topology, {.size_bytes = kMegabyte * 1000});
  EXPECT_LT(trace.ran_passes, trace.passes);
  EXPECT_TRUE(trace.critical_path.stretched);
  int64_t last_ps = 0;
  for (const TracedInstruction& row : trace.instructions) last_ps = std::max(last_ps, row.end_ps);
  EXPECT_NEAR(static_cast<double>(last_ps), static_cast<double>(trace.simulation.time_ps), 3e6);
}

TEST(TraceProgram, RefusesMoreEventsThanItHolds) {
  const Topology topology = FullMesh(2);
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 2);
  const Program program =
      LowerChecked(*HandSchedule(Algorithm::kDirect, collective, topology), collective, topology).value();
  const StatusOr<ProgramTrace> trace =
      TraceProgram(program, collective, topology, {.size_bytes = kMegabyte}, {.most_events = 2});
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.status().message(), "the simulation has 4 events; a trace holds at most 2");
}

}  // namespace
}  // namespace xccl
