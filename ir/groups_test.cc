// Trees of links as groups of programs: lowering, verifier, interpreter and timing together.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ir/interpret.h"
#include "ir/lower.h"
#include "ir/program_test_util.h"
#include "ir/simulate.h"
#include "ir/simulate_program.h"
#include "ir/tree_test_util.h"
#include "ir/verify_program.h"
#include "ir/verify_schedule.h"

namespace xccl {
namespace {

std::string FirstOf(const std::vector<Violation>& violations) {
  return violations.empty() ? "" : ToString(violations.front());
}

void CheckRuns(const Program& program, const Collective& collective, InterpretOptions options) {
  const std::vector<std::vector<std::byte>> inputs = ExactInputs(program, collective, options);
  const std::vector<std::vector<std::byte>> expected = ExpectedOutputs(program, collective, inputs, options);
  for (bool in_place : {false, true}) {
    if (in_place && !program.in_place) continue;
    options.in_place = in_place;
    const auto outputs = Interpret(program, collective, inputs, options);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    for (Rank r : collective.ranks())
      ASSERT_EQ((*outputs)[r.index()], expected[r.index()])
          << "rank " << r.value << (in_place ? " in place" : "");
  }
}

std::vector<Topology> Machines() {
  return {TreeSwitch(2), TreeSwitch(3), TreeSwitch(5), TreeLeaves(2, 1), TreeLeaves(3, 2)};
}

// Every kind on every machine, straight and with detours; slots, fusing, pacing, merging and passes take
// turns.
TEST(Groups, ComputeThePostconditionOfEveryKind) {
  constexpr int32_t kSlots[] = {1, 2, 8};
  int turn = 0, with_groups = 0;
  for (const Topology& topology : Machines()) {
    for (CollectiveKind kind : AllNamedCollectives()) {
      for (uint64_t seed = 0; seed < 6; ++seed) {
        ++turn;
        const Collective collective = MakeCollective(kind, topology.num_ranks()).WithChunks(turn % 3 + 1);
        const Schedule schedule = TreeSchedule(collective, topology, seed);
        SCOPED_TRACE(std::string(ToString(kind)) + " on " + std::to_string(topology.num_ranks()) + ", seed " +
                     std::to_string(seed));
        ASSERT_EQ(FirstOf(VerifySchedule(schedule, collective, topology)), "");
        LowerOptions options{.size_bytes = 1000, .merge = turn % 5 == 0 ? 1 : 16};
        if (turn % 2 == 0) options.slots = kSlots[turn % 3];
        if (turn % 7 < 4) options.fuse = turn % 7 < 2;
        if (turn % 11 < 6) options.pace = turn % 11 < 3;
        StatusOr<Program> program = Lower(schedule, collective, topology, options);
        ASSERT_TRUE(program.ok()) << program.status().message();
        ASSERT_EQ(FirstOf(VerifyProgram(*program, collective)), "");
        with_groups += program->groups.empty() ? 0 : 1;
        if (turn % 4 == 0) program->segment_bytes = 100;
        CheckRuns(*program, collective, {.size_bytes = 1000, .seed = static_cast<uint64_t>(turn)});
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(with_groups, turn / 3);
}

TEST(Groups, ReduceEveryTypeWithEveryOperator) {
  const Topology topology = TreeLeaves(2, 1);
  for (CollectiveKind kind : {CollectiveKind::kAllreduce, CollectiveKind::kReduceScatter}) {
    const Collective collective = MakeCollective(kind, 4).WithChunks(2);
    for (uint64_t seed : {0, 1}) {
      const StatusOr<Program> program =
          Lower(TreeSchedule(collective, topology, seed), collective, topology, {.size_bytes = 600});
      ASSERT_TRUE(program.ok());
      ASSERT_FALSE(program->groups.empty());
      for (DataType type : AllDataTypes()) {
        for (ReduceOp op : AllReduceOps()) {
          SCOPED_TRACE(std::string(ToString(kind)) + " " + std::string(ToString(op)) + " of " +
                       std::string(ToString(type)));
          CheckRuns(*program, collective, {.type = type, .op = op, .size_bytes = 600});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

Program LoweredOn(const Topology& topology, const Collective& collective, const LowerOptions& options) {
  return Lower(TreeSchedule(collective, topology, 0), collective, topology, options).value();
}

// Each byte is touched once at the root: what comes from the switch is added to its own and sent out.
TEST(Groups, AllreduceIsOneInstructionAtItsRoot) {
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 3);
  const Program program = LoweredOn(TreeSwitch(3), collective, {.size_bytes = 1000});
  ASSERT_EQ(program.groups.size(), 2u);
  EXPECT_EQ(
      program.groups[0],
      (Group{Group::Kind::kMulticast, Rank(0), {Rank(1), Rank(2)}, 0, {LinkId(0), LinkId(3), LinkId(5)}}));
  EXPECT_EQ(program.groups[1],
            (Group{Group::Kind::kReduce, Rank(0), {Rank(1), Rank(2)}, 0, {LinkId(4), LinkId(2), LinkId(1)}}));
  ASSERT_EQ(program.ranks[Rank(0)].threadblocks.size(), 1u);
  const Threadblock& root = program.ranks[Rank(0)].threadblocks[0];
  EXPECT_EQ(root.send_group, 0);
  EXPECT_EQ(root.recv_group, 1);
  ASSERT_EQ(root.instructions.size(), 1u);
  EXPECT_EQ(root.instructions[0].op, Opcode::kRecvReduceCopySend);
  EXPECT_TRUE(root.instructions[0].first);
  EXPECT_TRUE(root.instructions[0].final);
}

// A reduction that replaces what its root has: a program without groups cannot say it.
TEST(Groups, ReductionsThatReplaceBecomeReceives) {
  const Topology topology = TreeSwitch(4);
  const Collective collective = MakeCollective(CollectiveKind::kReduce, 4);  // to rank 2
  Schedule schedule;
  schedule.num_chunks = 1;
  const std::vector<Rank> pair = {Rank(0), Rank(2)}, rest = {Rank(1), Rank(3)};
  // Rank 2 gives its own away and gets the sum of all in exchange.
  schedule.Add(ChunkId(0), 1, Rank(2), Rank(3), TreePath(topology, Rank(3), std::vector{Rank(2)}, true, 0),
               TransferOp::kReduce, 0);
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), TreePath(topology, Rank(1), std::vector{Rank(0)}, true, 0),
               TransferOp::kReduce, 0);
  const std::vector<LinkId> tree = TreePath(topology, Rank(2), rest, true, 0);
  std::vector<Rank> sources, destinations;
  PathEnds(topology, tree, sources, destinations);
  schedule.Add(ChunkId(0), 1, sources[0], Rank(2), tree, TransferOp::kCopy, 1);
  Normalize(schedule);
  ASSERT_EQ(FirstOf(VerifySchedule(schedule, collective, topology)), "");
  const StatusOr<Program> program = Lower(schedule, collective, topology, {.size_bytes = 1000});
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_EQ(FirstOf(VerifyProgram(*program, collective)), "");
  for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg})
    for (DataType type : {DataType::kInt32, DataType::kBfloat16})
      CheckRuns(*program, collective, {.type = type, .op = op, .size_bytes = 1000});
  EXPECT_FALSE(Lower(schedule, collective, topology, {.size_bytes = 1000, .groups = false}).ok());
}

// What a switch does once a program does once; without groups every member has its own.
TEST(Groups, KeepTheScheduleTime) {
  constexpr int64_t kSize = 64 << 20;
  for (const Topology& topology : {TreeSwitch(4), TreeLeaves(3, 1), TreeLeaves(2, 2)}) {
    for (CollectiveKind kind :
         {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
          CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
      for (TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
        SCOPED_TRACE(std::string(ToString(kind)) + " on " + std::to_string(topology.num_ranks()));
        const Collective collective =
            MakeCollective(kind, topology.num_ranks()).WithChunks(topology.num_ranks());
        const Schedule schedule = TreeSchedule(collective, topology, 0);
        const int64_t wanted =
            Simulate(schedule, collective, topology, {.size_bytes = kSize, .model = model}).time_ps;
        const auto time_of = [&](bool groups) {
          const Program program =
              Lower(schedule, collective, topology, {.size_bytes = kSize, .model = model, .groups = groups})
                  .value();
          EXPECT_EQ(program.groups.empty(), !groups);
          return SimulateProgram(program, collective, topology, {.size_bytes = kSize, .model = model})
              .value()
              .time_ps;
        };
        EXPECT_LE(time_of(true), wanted + wanted / 20);
        // One rank sends all, or receives all: without groups as often as there are others.
        if (collective.spec().root && model == TimeModel::kPipelined) {
          EXPECT_GT(time_of(false), wanted + wanted / 4);
        }
      }
    }
  }
}

}  // namespace
}  // namespace xccl
