// Trees of links become groups of programs: tests lowering, verifier, interpreter and timing together.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/random.h"
#include "ir/interpret/interpret.h"
#include "ir/lower/chains.h"
#include "ir/lower/testing/checked.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulate_program.h"
#include "ir/testing/check_runs.h"
#include "ir/testing/programs.h"
#include "ir/testing/trees.h"
#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"

namespace xccl {
namespace {

std::string FirstOf(const std::vector<Violation>& violations) {
  return violations.empty() ? "" : ToString(violations.front());
}

std::vector<Topology> Machines() {
  return {TreeSwitch(2), TreeSwitch(3), TreeSwitch(5), TreeLeaves(2, 1), TreeLeaves(3, 2)};
}

// Every kind on every machine, with and without detours; the options for slots, fusing, pacing, merging and
// passes alternate.
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
        LowerOptions options{.size_bytes = 1000};
        options.form = lowering::Form{
            .slots = {}, .fuse = turn % 7 < 4, .pace = turn % 11 < 6, .merge = turn % 5 == 0 ? 1 : 16};
        if (turn % 2 == 0) options.form->slots = kSlots[turn % 3];
        StatusOr<Program> program = LowerChecked(schedule, collective, topology, options);
        ASSERT_TRUE(program.ok()) << program.status().message();
        ASSERT_EQ(FirstOf(VerifyProgram(*program, collective, topology)), "");
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
          LowerChecked(TreeSchedule(collective, topology, seed), collective, topology, {.size_bytes = 600});
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
  return LowerChecked(TreeSchedule(collective, topology, 0), collective, topology, options).value();
}

// The root touches each byte once: it adds what comes from the switch to its own and sends the sum out.
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

// The program of the test above. Rank 0 is the root of both groups; ranks 1 and 2 send in threadblock 0 and
// receive in threadblock 1.
struct Rejection {
  const char* what;
  void (*spoil)(Program&);
  const char* message;
};
Threadblock& RootBlock(Program& p) { return p.ranks[Rank(0)].threadblocks[0]; }

constexpr Rejection kRejections[] = {
    {"another protocol", [](Program& p) { p.protocol = Protocol::kLl; },
     "[P1] program: has groups of switches and protocol ll; expected simple"},
    {"members out of order", [](Program& p) { std::swap(p.groups[0].members[0], p.groups[0].members[1]); },
     "[P1] multicast group of rank 0 on channel 0: expected a root and two or more other members of the "
     "ranks "
     "0..2, each once and in order"},
    {"one member", [](Program& p) { p.groups[1].members.pop_back(); },
     "[P1] reduce group of rank 0 on channel 0: expected a root and two or more other members of the ranks "
     "0..2, each once and in order"},
    {"its root as a member", [](Program& p) { p.groups[1].members[0] = Rank(0); },
     "[P1] reduce group of rank 0 on channel 0: expected a root and two or more other members of the ranks "
     "0..2, each once and in order"},
    {"groups out of order", [](Program& p) { std::swap(p.groups[0], p.groups[1]); },
     "[P1] multicast group of rank 0 on channel 0: out of order; expected sorted by kind, root and channel, "
     "each once"},
    {"no connection", [](Program& p) { p.groups[0].channel = 5; },
     "[P1] multicast group of rank 0 on channel 5: the program has no connection 0->1 on channel 5"},
    {"a connection in two groups",
     [](Program& p) {
       p.connections.push_back({Rank(2), Rank(1), 0, {LinkId(4), LinkId(3)}});
       p.groups.push_back({Group::Kind::kReduce, Rank(1), {Rank(0), Rank(2)}, 0, {}});
     },
     "[P1] reduce group of rank 1 on channel 0: connection 0->1 is in an earlier group"},
    {"no such group", [](Program& p) { RootBlock(p).send_group = 7; },
     "[P1] rank 0 threadblock 0: sends to group 7; the program has 2"},
    {"a group of the other kind", [](Program& p) { RootBlock(p).send_group = 1; },
     "[P1] rank 0 threadblock 0: sends to the reduce group of rank 0 on channel 0; expected a multicast "
     "group "
     "of rank 0 on channel 0"},
    {"a group and a peer", [](Program& p) { RootBlock(p).recv_peer = Rank(1); },
     "[P1] rank 0 threadblock 0: receives from a rank and a group; expected one of them"},
    {"a member served alone",
     [](Program& p) {
       RootBlock(p).send_group.reset();
       RootBlock(p).send_peer = Rank(1);
     },
     "[P1] rank 0 threadblock 0: sends to rank 1 on channel 0, which is a group's; expected the group"},
    {"nobody to receive from", [](Program& p) { RootBlock(p).recv_group.reset(); },
     "[P1] rank 0 threadblock 0 instruction 0: recv_reduce_copy_send in a threadblock that receives from "
     "nobody"},
    {"a member that does not send",
     [](Program& p) {
       p.ranks[Rank(2)].threadblocks[0].instructions.clear();
       p.ranks[Rank(2)].threadblocks[1].instructions[0].dep_count = 0;
     },
     "[P4] connection 2->0 channel 0: 0 sends and 1 receives"},
    {"members that wait for the sum before they send",
     [](Program& p) {
       p.ranks[Rank(2)].threadblocks[1].instructions[0].dep_count = 0;
       Instruction& send = p.ranks[Rank(2)].threadblocks[0].instructions[0];
       send.dep_first = static_cast<int32_t>(p.dependencies.size());
       send.dep_count = 1;
       p.dependencies.push_back({1, 0});
     },
     "[P5] rank 0 threadblock 0 instruction 0: waits for rank 2 threadblock 0 instruction 0, and so on in a "
     "circle of 3 instructions with 2 slots"},
    {"the root's own left out",
     [](Program& p) {
       RootBlock(p).instructions[0].op = Opcode::kRecvCopySend;
       RootBlock(p).instructions[0].first = false;
     },
     "[P9] rank 0 threadblock 0 instruction 0: is final, but what it makes is not the complete sum"},
    {"a sum that is not final", [](Program& p) { RootBlock(p).instructions[0].final = false; },
     "[P9] rank 0 threadblock 0 instruction 0: completes the sum of chunk 0; expected final"},
};

TEST(Groups, VerifierRejects) {
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 3);
  const Topology topology = TreeSwitch(3);
  const Program good = LoweredOn(topology, collective, {.size_bytes = 1000});
  ASSERT_EQ(FirstOf(VerifyProgram(good, collective, topology)), "");
  for (const Rejection& rejection : kRejections) {
    Program program = good;
    rejection.spoil(program);
    EXPECT_EQ(FirstOf(VerifyProgram(program, collective, topology)), rejection.message) << rejection.what;
  }
}

Instruction Make(Opcode op, Operand src, Operand dst) {
  Instruction i;
  i.op = op;
  i.count = 1;
  i.src = src;
  i.dst = dst;
  return i;
}

// Rank 0 multicasts chunks 0 and 1. Rank 1 receives them after a message that rank 0 sends once both are in
// flight. One slot is too few, though rank 2 receives its copies at once.
TEST(Groups, TakeASlotOfEveryMember) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kBroadcast;
  spec.ranks = {Rank(0), Rank(1), Rank(2)};
  spec.root = Rank(0);
  const Collective collective = Collective::Create(spec).value().WithChunks(2);
  const auto in = [](int32_t slot) { return Operand{BufferKind::kInput, slot}; };
  const auto out = [](int32_t slot) { return Operand{BufferKind::kOutput, slot}; };
  Program program;
  program.ranks = IdVector<Rank, RankProgram>(3);
  program.connections = {{Rank(0), Rank(1), 0, {}}, {Rank(0), Rank(1), 1, {}}, {Rank(0), Rank(2), 0, {}}};
  program.groups = {{Group::Kind::kMulticast, Rank(0), {Rank(1), Rank(2)}, 0, {}}};
  Threadblock cast, extra, take;
  cast.send_group = 0;
  cast.instructions = {Make(Opcode::kSend, in(0), {}), Make(Opcode::kSend, in(1), {})};
  extra.send_peer = Rank(1);
  extra.channel = 1;
  extra.instructions = {Make(Opcode::kSend, in(0), {})};
  extra.instructions[0].dep_count = 1;  // on dependency 0
  program.ranks[Rank(0)].threadblocks = {cast, extra, {}};
  program.ranks[Rank(0)].threadblocks[2].instructions = {Make(Opcode::kCopy, in(0), out(0)),
                                                         Make(Opcode::kCopy, in(1), out(1))};
  take.recv_peer = Rank(0);
  take.instructions = {Make(Opcode::kRecv, {}, out(0)), Make(Opcode::kRecv, {}, out(1))};
  program.ranks[Rank(2)].threadblocks = {take};
  Threadblock first;
  first.recv_peer = Rank(0);
  first.channel = 1;
  first.instructions = {Make(Opcode::kRecv, {}, {BufferKind::kScratch, 0})};
  take.instructions[0].dep_first = 1;
  take.instructions[0].dep_count = 1;
  program.ranks[Rank(1)].scratch = {ChunkId(0)};
  program.ranks[Rank(1)].threadblocks = {take, first};
  program.dependencies = {{0, 1}, {1, 0}};
  program.slots = 2;
  const Topology topology = TreeSwitch(3);
  RouteThrough(topology, program);
  EXPECT_EQ(FirstOf(VerifyProgram(program, collective, topology)), "");
  CheckRuns(program, collective, {.size_bytes = 1000});
  program.slots = 1;
  EXPECT_EQ(
      FirstOf(VerifyProgram(program, collective, topology)),
      "[P5] rank 0 threadblock 0 instruction 1: waits for rank 1 threadblock 0 instruction 0, and so on "
      "in a circle of 4 instructions with 1 slots");
  const InterpretOptions options{.size_bytes = 1000};
  EXPECT_FALSE(Interpret(program, collective, ExactInputs(program, collective, options), options).ok());
}

// Changes a program a little. If the verifier accepts it, it computes the right result in every order.
TEST(Groups, MutationsAreRejectedOrHarmless) {
  int rejected = 0, harmless = 0;
  const Topology topology = TreeLeaves(2, 1);
  for (CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter}) {
    const Collective collective = MakeCollective(kind, 4).WithChunks(2);
    const InterpretOptions options{.type = DataType::kInt32, .size_bytes = 256};
    for (uint64_t seed : {0, 3}) {
      const Program good =
          LowerChecked(TreeSchedule(collective, topology, seed), collective, topology, {.size_bytes = 256})
              .value();
      const auto inputs = ExactInputs(good, collective, options);
      const auto expected = ExpectedOutputs(good, collective, inputs, options);
      Random random(seed);
      for (int turn = 0; turn < 300; ++turn) {
        Program mutant = good;
        RankProgram& rank = mutant.ranks[Rank(static_cast<int64_t>(random.Below(4)))];
        if (rank.threadblocks.empty()) continue;
        Threadblock& block = rank.threadblocks[random.Below(rank.threadblocks.size())];
        Instruction& i = block.instructions[random.Below(block.instructions.size())];
        switch (turn % 6) {
          case 0:
            std::swap(i, block.instructions.front());
            break;
          case 1:
            i.src.slot ^= 1;
            break;
          case 2:
            i.dst.slot ^= 1;
            break;
          case 3:
            i.dep_count = 0;
            break;
          case 4:
            i.op = i.op == Opcode::kRecvReduceCopySend ? Opcode::kRecvCopySend : Opcode::kRecv;
            break;
          case 5:
            std::swap(mutant.groups[random.Below(mutant.groups.size())].members,
                      mutant.groups[random.Below(mutant.groups.size())].members);
            break;
        }
        if (mutant == good) continue;
        if (!VerifyProgram(mutant, collective, topology).empty()) {
          ++rejected;
          continue;
        }
        ++harmless;
        for (uint64_t order : {1, 2}) {
          InterpretOptions seeded = options;
          seeded.seed = order;
          const auto outputs = Interpret(mutant, collective, inputs, seeded);
          ASSERT_TRUE(outputs.ok()) << outputs.status().message();
          ASSERT_EQ(*outputs, expected) << "turn " << turn;
        }
      }
    }
  }
  EXPECT_GT(rejected, harmless);
  EXPECT_GT(harmless, 0);
}

// The groups and their connections follow the links of trees of the machine.
TEST(Groups, PathsAreTrees) {
  // Ranks 0 to 2 at switch s3, with the links of TreeSwitch(3), and a switch t behind it.
  TopologySpec spec = TreeSwitch(3).spec();
  spec.nodes.push_back({NodeKind::kSwitch, "t", spec.nodes.back().host, true, true});
  Link to_t = spec.links[0];
  to_t.from = NodeId(3);
  to_t.to = NodeId(4);
  spec.links.push_back(to_t);  // link 6
  const Topology topology = Topology::Create(spec).value();
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 3);
  const Program good = LoweredOn(TreeSwitch(3), collective, {.size_bytes = 1000});
  ASSERT_EQ(FirstOf(VerifyProgram(good, collective, topology)), "");
  const struct {
    std::vector<int32_t> multicast, reduce;  // links, instead of 0, 3, 5 and 4, 2, 1
    const char* message;
  } cases[] = {
      {{}, {4, 2, 1}, "[P1] multicast group of rank 0 on channel 0: its path has no links"},
      {{0, 9},
       {4, 2, 1},
       "[P1] multicast group of rank 0 on channel 0: its path names link 9; links are 0..6"},
      {{0, 2},
       {4, 2, 1},
       "[P1] multicast group of rank 0 on channel 0: its path ends at switch s3; expected a gpu"},
      {{0, 3},
       {4, 2, 1},
       "[P1] multicast group of rank 0 on channel 0: its path joins rank 0 with rank 1; expected rank 0 with "
       "ranks 1, 2"},
      {{0, 3, 5, 6},
       {4, 2, 1},
       "[P1] multicast group of rank 0 on channel 0: its path ends at switch t; expected a gpu"},
      {{3, 0, 5},
       {4, 2, 1},
       "[P1] multicast group of rank 0 on channel 0: its path starts at switch s3; expected a gpu"},
      {{2, 1, 5},
       {4, 2, 1},
       "[P1] multicast group of rank 0 on channel 0: its path joins rank 1 with ranks 0, 2; expected rank 0 "
       "with ranks 1, 2"},
      {{0, 3, 5},
       {4, 2},
       "[P1] reduce group of rank 0 on channel 0: its path ends at switch s3; expected a gpu"},
      {{0, 3, 5},
       {1, 2, 4},
       "[P1] reduce group of rank 0 on channel 0: its path ends at switch s3; expected a gpu"},
  };
  for (const auto& c : cases) {
    Program program = good;
    for (const auto& [group, links] : {std::pair(0, &c.multicast), std::pair(1, &c.reduce)}) {
      program.groups[group].path.clear();
      for (int32_t l : *links) program.groups[group].path.emplace_back(l);
    }
    EXPECT_EQ(FirstOf(VerifyProgram(program, collective, topology)), c.message);
  }
  // A switch that only forwards.
  EXPECT_EQ(FirstOf(VerifyProgram(good, collective, OneSwitch(3))),
            "[P1] multicast group of rank 0 on channel 0: its path branches at switch s, which does not "
            "multicast");
}

// A connection of a group has links of its own in a switch with two cables to each rank.
TEST(Groups, ConnectionsAreBranchesOfTheirPath) {
  TopologySpec spec = TreeSwitch(3).spec();
  const std::vector<Link> links = spec.links;
  spec.links.insert(spec.links.end(), links.begin(), links.end());
  const Topology topology = Topology::Create(spec).value();
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 3);
  Program program = LoweredOn(TreeSwitch(3), collective, {.size_bytes = 1000});
  ASSERT_EQ(FirstOf(VerifyProgram(program, collective, topology)), "");
  program.connections[0].path[1] = LinkId(9);
  EXPECT_EQ(
      FirstOf(VerifyProgram(program, collective, topology)),
      "[P1] connection 0->1 channel 0: its path is no branch of the path of its multicast group of rank 0 "
      "on channel 0");
}

// A reduction that replaces what its root holds; a program without groups cannot express it.
TEST(Groups, ReductionsThatReplaceBecomeReceives) {
  const Topology topology = TreeSwitch(4);
  const Collective collective = MakeCollective(CollectiveKind::kReduce, 4);  // to rank 2
  Schedule schedule;
  schedule.num_chunks = 1;
  const std::vector<Rank> pair = {Rank(0), Rank(2)}, rest = {Rank(1), Rank(3)};
  // Rank 2 gives its own contribution away and gets the sum of all in exchange.
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
  const StatusOr<Program> program = LowerChecked(schedule, collective, topology, {.size_bytes = 1000});
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_EQ(FirstOf(VerifyProgram(*program, collective, topology)), "");
  for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg})
    for (DataType type : {DataType::kInt32, DataType::kBfloat16})
      CheckRuns(*program, collective, {.type = type, .op = op, .size_bytes = 1000});
  EXPECT_FALSE(lowering::WithoutTrees(schedule, topology).ok());
}

// A program does once what a switch does once; without groups it repeats it for every member.
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
              LowerChecked(groups ? schedule : lowering::WithoutTrees(schedule, topology).value(), collective,
                           topology, {.size_bytes = kSize, .model = model})
                  .value();
          EXPECT_EQ(program.groups.empty(), !groups);
          return SimulateProgram(program, collective, topology, {.size_bytes = kSize, .model = model})
              .value()
              .time_ps;
        };
        EXPECT_LE(time_of(true), wanted + wanted / 20);
        // One rank sends all or receives all; without groups it does so once per other rank.
        if (collective.spec().root && model == TimeModel::kPipelined) {
          EXPECT_GT(time_of(false), wanted + wanted / 4);
        }
      }
    }
  }
}

}  // namespace
}  // namespace xccl
