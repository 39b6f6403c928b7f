#include <gtest/gtest.h>

#include <algorithm>

#include "ir/interpret/interpret.h"
#include "ir/lower/testing/checked.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulate_program.h"
#include "ir/testing/check_runs.h"
#include "ir/testing/graphs.h"
#include "ir/testing/programs.h"
#include "ir/translated.h"
#include "ir/verify/verify_program.h"

namespace xccl {
namespace {

constexpr Algorithm kAlgorithms[] = {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree};

std::string FirstOf(const std::vector<Violation>& violations) {
  return violations.empty() ? "" : ToString(violations.front());
}

// Every kind, algorithm and rank count; slots, fusing, merging, passes and sizes take turns.
TEST(Lower, ComputesThePostconditionOfEveryKindAndAlgorithm) {
  constexpr int32_t kSlots[] = {1, 2, 8};
  constexpr int64_t kSizes[] = {1000, 52, 4096, 0};
  int turn = 0;
  for (int32_t ranks : {1, 2, 3, 5, 7, 8}) {
    const Topology topology = ranks % 2 == 0 ? FullMesh(ranks) : OneSwitch(ranks);
    for (CollectiveKind kind : AllNamedCollectives()) {
      for (Algorithm algorithm : kAlgorithms) {
        for (int32_t chunks : {1, 3}) {
          ++turn;
          const Collective collective = MakeCollective(kind, ranks).WithChunks(chunks);
          const Schedule schedule = *HandSchedule(algorithm, collective, topology);
          SCOPED_TRACE(std::string(ToString(kind)) + " " + std::string(ToString(algorithm)) + " on " +
                       std::to_string(ranks) + " in " + std::to_string(chunks));
          StatusOr<Program> program = LowerChecked(schedule, collective, topology,
                                                   {.size_bytes = 1000,
                                                    .form = lowering::Form{.slots = kSlots[turn % 3],
                                                                           .fuse = turn % 4 != 0,
                                                                           .pace = turn % 2 != 0,
                                                                           .merge = turn % 5 == 0 ? 1 : 16}});
          ASSERT_TRUE(program.ok()) << program.status().message();
          ASSERT_EQ(FirstOf(VerifyProgram(*program, collective, topology)), "");
          EXPECT_EQ(program->in_place, collective.InPlaceOf(Rank(0)).has_value());
          const InterpretOptions options{.size_bytes = kSizes[turn % 4], .seed = static_cast<uint64_t>(turn)};
          const int32_t passes = turn % 5 + 1;
          const CollectiveSizes sizes(collective, options.size_bytes);
          int64_t largest = 0;
          for (int32_t c = 0; c < collective.num_chunks(); ++c)
            largest = std::max(largest, sizes.ChunkBytes(ChunkId(c)));
          program->segment_bytes = (largest + passes - 1) / passes;
          CheckRuns(*program, collective, options);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Lower, ReducesEveryTypeWithEveryOperator) {
  const Topology topology = FullMesh(4);
  for (CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kReduceScatter, CollectiveKind::kReduce}) {
    for (Algorithm algorithm : kAlgorithms) {
      const Collective collective = MakeCollective(kind, 4).WithChunks(2);
      const StatusOr<Program> program = LowerChecked(*HandSchedule(algorithm, collective, topology),
                                                     collective, topology, {.size_bytes = 600});
      ASSERT_TRUE(program.ok());
      ASSERT_EQ(FirstOf(VerifyProgram(*program, collective, topology)), "");
      for (DataType type : AllDataTypes()) {
        for (ReduceOp op : AllReduceOps()) {
          SCOPED_TRACE(std::string(ToString(kind)) + " " + std::string(ToString(algorithm)) + " " +
                       std::string(ToString(op)) + " of " + std::string(ToString(type)));
          CheckRuns(*program, collective, {.type = type, .op = op, .size_bytes = 600});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

Schedule RingAllgather(const Collective& collective, const Topology& topology) {
  return *HandSchedule(Algorithm::kRing, collective, topology);
}

std::vector<Opcode> Opcodes(const Threadblock& block) {
  std::vector<Opcode> ops;
  for (const Instruction& i : block.instructions) ops.push_back(i.op);
  return ops;
}

TEST(Lower, RingAllgatherIsOneThreadblockThatForwards) {
  const Collective collective = MakeCollective(CollectiveKind::kAllgather, 4);
  const Topology topology = FullMesh(4);
  const Program program = LowerChecked(RingAllgather(collective, topology), collective, topology).value();
  const RankProgram& rank = program.ranks[Rank(1)];
  ASSERT_EQ(rank.threadblocks.size(), 2u);
  EXPECT_EQ(Opcodes(rank.threadblocks[1]), std::vector<Opcode>({Opcode::kCopy}));
  EXPECT_EQ(Opcodes(rank.threadblocks[0]), std::vector<Opcode>({Opcode::kSend, Opcode::kRecvCopySend,
                                                                Opcode::kRecvCopySend, Opcode::kRecv}));
  EXPECT_EQ(rank.threadblocks[0].recv_peer, Rank(0));
  EXPECT_EQ(rank.threadblocks[0].send_peer, Rank(2));
  EXPECT_TRUE(rank.scratch.empty());
  EXPECT_TRUE(program.dependencies.empty());
}

TEST(Lower, RingReduceScatterStoresNoPartialSums) {
  const Collective collective = MakeCollective(CollectiveKind::kReduceScatter, 4);
  const Topology topology = FullMesh(4);
  const Program program =
      LowerChecked(*HandSchedule(Algorithm::kRing, collective, topology), collective, topology).value();
  const RankProgram& rank = program.ranks[Rank(2)];
  ASSERT_EQ(rank.threadblocks.size(), 1u);
  EXPECT_EQ(Opcodes(rank.threadblocks[0]),
            std::vector<Opcode>(
                {Opcode::kSend, Opcode::kRecvReduceSend, Opcode::kRecvReduceSend, Opcode::kRecvReduceCopy}));
  EXPECT_TRUE(rank.scratch.empty());
  EXPECT_TRUE(rank.threadblocks[0].instructions[0].first);
  EXPECT_TRUE(rank.threadblocks[0].instructions[3].first);
  EXPECT_TRUE(rank.threadblocks[0].instructions[3].final);
  EXPECT_FALSE(rank.threadblocks[0].instructions[2].final);
}

// A ring that forwards in one threadblock would deadlock with one slot; the receive must come first then.
TEST(Lower, RingWithOneSlotDoesNotDeadlock) {
  const Collective collective = MakeCollective(CollectiveKind::kAllgather, 5);
  const Topology topology = FullMesh(5);
  const Program program =
      LowerChecked(RingAllgather(collective, topology), collective, topology, {.form = {{.slots = 1}}})
          .value();
  EXPECT_EQ(program.slots, 1);
  EXPECT_EQ(FirstOf(VerifyProgram(program, collective, topology)), "");
}

TEST(Lower, MergesNeighbouringChunksUpToTheLimit) {
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 2).WithChunks(8);
  const Topology topology = FullMesh(2);
  const Schedule schedule = *HandSchedule(Algorithm::kDirect, collective, topology);
  const auto counts = [&](int32_t merge) {
    const Program program =
        LowerChecked(schedule, collective, topology, {.form = {{.merge = merge}}}).value();
    EXPECT_EQ(FirstOf(VerifyProgram(program, collective, topology)), "");
    std::vector<int32_t> result;
    for (const Instruction& i : program.ranks[Rank(1)].threadblocks[0].instructions)
      if (i.op == Opcode::kSend) result.push_back(i.count);
    return result;
  };
  EXPECT_EQ(counts(16), std::vector<int32_t>({8}));
  EXPECT_EQ(counts(3), std::vector<int32_t>({3, 3, 2}));
  EXPECT_EQ(counts(1).size(), 8u);
}

TEST(Lower, ParallelPathsGetChannelsOfTheirOwn) {
  TopologySpec spec;
  for (const char* id : {"0", "1"}) spec.nodes.push_back({NodeKind::kGpu, id, std::nullopt, false, false});
  for (int i = 0; i < 3; ++i) spec.links.push_back({NodeId(0), NodeId(1), 1'000'000'000, 0, 0});
  const Topology topology = Topology::Create(spec).value();
  CollectiveSpec wanted;
  wanted.kind = CollectiveKind::kBroadcast;
  wanted.ranks = {Rank(0), Rank(1)};
  wanted.root = Rank(0);
  const Collective collective = Collective::Create(wanted).value().WithChunks(3);
  Schedule schedule;
  schedule.num_chunks = 3;
  for (int i = 0; i < 3; ++i)
    schedule.Add(ChunkId(i), 1, Rank(0), Rank(1), std::vector<LinkId>{LinkId(i)}, TransferOp::kCopy, 0);
  Normalize(schedule);
  const Program program = LowerChecked(schedule, collective, topology).value();
  EXPECT_EQ(FirstOf(VerifyProgram(program, collective, topology)), "");
  ASSERT_EQ(program.connections.size(), 3u);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(program.connections[i], (Connection{Rank(0), Rank(1), i, {LinkId(i)}}));
}

// Two neighbours add to one chunk in one step: their receives keep the order in which the second relies on
// the first.
TEST(Lower, TwoAdditionsToOneChunkInOneStepKeepTheirOrder) {
  const Topology topology = FullMesh(4);
  const Collective collective = MakeCollective(CollectiveKind::kReduce, 4).WithChunks(2);
  for (bool reversed : {false, true}) {
    Schedule schedule;
    schedule.num_chunks = 2;
    for (int32_t i = 0; i < 4; ++i) {
      const Rank src(reversed ? 3 - i : i), root(2);
      for (int32_t c = 0; c < 2; ++c)
        if (src != root)
          schedule.Add(ChunkId(c), 1, src, root, LinkBetween(topology, src, root), TransferOp::kReduce, 0);
    }
    Normalize(schedule);
    const Program program = LowerChecked(schedule, collective, topology).value();
    EXPECT_EQ(FirstOf(VerifyProgram(program, collective, topology)), "");
    CheckRuns(program, collective, {.size_bytes = 100});
  }
}

// A chunk goes once round a ring, from rank 0, and so do all its translates.
Schedule RoundARing(int32_t ranks, Topology& ring) {
  TopologySpec spec;
  spec.name = "ring";
  Schedule schedule;
  schedule.num_chunks = ranks;
  Automorphism next{ranks, {}};
  for (int32_t r = 0; r < ranks; ++r) {
    Node node;
    node.id = std::to_string(r);
    spec.nodes.push_back(node);
    spec.links.push_back(Link{NodeId(r), NodeId((r + 1) % ranks), 1'000'000'000});
    next.image.push_back(NodeId((r + 1) % ranks));
    const LinkId link(r);
    if (r + 1 < ranks)
      schedule.Add(ChunkId(0), 1, Rank(r), Rank(r + 1), std::span(&link, 1), TransferOp::kCopy, r);
  }
  schedule.symmetry = {next};
  ring = Topology::Create(std::move(spec)).value();
  return schedule;
}

TEST(Lower, WritesCompressedSchedulesOut) {
  Topology ring = testing::MakeGraph("pair", 2, 0, {{0, 1, 1, 0, 0}});
  const Schedule schedule = RoundARing(5, ring);
  const Collective gather = testing::MakeCollective(CollectiveKind::kAllgather, 5);
  const Schedule plain = Expand(schedule, gather, ring).value();
  EXPECT_EQ(plain.size(), 20);
  EXPECT_TRUE(LowerChecked(schedule, gather, ring).value() == LowerChecked(plain, gather, ring).value());
}

TEST(Lower, RefusesCompressedSchedulesOfTooManyTransfers) {
  Topology ring = testing::MakeGraph("pair", 2, 0, {{0, 1, 1, 0, 0}});
  const Schedule schedule = RoundARing(4096, ring);
  const StatusOr<Program> program =
      LowerChecked(schedule, testing::MakeCollective(CollectiveKind::kAllgather, 4096), ring);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(
      program.status(),
      LimitReached("lower: schedule: 16773120 transfers without its symmetry; at most 4194304 are written "
                   "out"));
}

// A move of a later step whose data is there overtakes a move of an earlier step that waits for a relay.
TEST(Lower, MovesGoWhenTheyCan) {
  const Topology topology = FullMesh(3);
  const Collective collective = MakeCollective(CollectiveKind::kAllgather, 3);
  Schedule schedule;
  schedule.num_chunks = 3;
  const auto add = [&](int32_t chunk, int32_t src, int32_t dst, int32_t step) {
    schedule.Add(ChunkId(chunk), 1, Rank(src), Rank(dst), LinkBetween(topology, Rank(src), Rank(dst)),
                 TransferOp::kCopy, step);
  };
  add(2, 2, 0, 0), add(1, 1, 0, 0), add(1, 1, 2, 0), add(0, 0, 2, 0);
  add(2, 0, 1, 1);
  add(0, 0, 1, 2);
  Normalize(schedule);
  const Program program = LowerChecked(schedule, collective, topology, {.form = {{.fuse = false}}}).value();
  EXPECT_EQ(FirstOf(VerifyProgram(program, collective, topology)), "");
  std::vector<Operand> sent;
  for (const Threadblock& block : program.ranks[Rank(0)].threadblocks)
    for (const Instruction& i : block.instructions)
      if (Sends(i.op) && block.send_peer == Rank(1)) sent.push_back(i.src);
  EXPECT_EQ(sent, std::vector<Operand>({{BufferKind::kInput, 0}, {BufferKind::kOutput, 2}}));
}

// In order of time, connections 0->2 and 1->2 would each carry first a chunk that rank 2 may store only after
// it has sent on the second chunk of the other connection.
TEST(Lower, FallsBackToStepsWhereTimeOrderWouldDeadlock) {
  const Topology topology = FullMesh(4);
  const Collective collective = MakeCollective(CollectiveKind::kAllgather, 4);
  Schedule schedule;
  schedule.num_chunks = 4;
  const auto add = [&](int32_t chunk, int32_t src, int32_t dst, int32_t step) {
    schedule.Add(ChunkId(chunk), 1, Rank(src), Rank(dst), LinkBetween(topology, Rank(src), Rank(dst)),
                 TransferOp::kCopy, step);
  };
  add(0, 0, 1, 0), add(1, 1, 0, 0);
  for (int32_t src : {2, 3})
    for (int32_t dst = 0; dst < 4; ++dst)
      if (src != dst) add(src, src, dst, 0);
  add(0, 1, 2, 1), add(1, 0, 2, 1);
  add(0, 2, 3, 2), add(1, 2, 3, 2), add(0, 0, 2, 2), add(1, 1, 2, 2);
  Normalize(schedule);
  for (int32_t slots : {1, 8}) {
    const Program program =
        LowerChecked(schedule, collective, topology, {.form = {{.slots = slots}}}).value();
    EXPECT_EQ(FirstOf(VerifyProgram(program, collective, topology)), "");
    CheckRuns(program, collective, {.size_bytes = 100});
  }
}

// The link from rank 0 to rank 1 is slow, so the value of rank 2 comes to rank 1 first. Where rank 1 alone
// adds up, it adds the value of rank 2 first. Where every rank adds up, all keep the schedule's order, for
// the same bits.
TEST(Lower, AddsUpInOrderOfArrivalWhereOneRankDoes) {
  TopologySpec spec = FullMesh(3).spec();
  for (Link& link : spec.links)
    if (link.from == NodeId(0) && link.to == NodeId(1)) link.bandwidth_bytes_per_s /= 2;
  const Topology topology = Topology::Create(spec).value();
  const auto first_added = [&](CollectiveKind kind, bool all_add) {
    const Collective collective = MakeCollective(kind, 3);
    Schedule schedule;
    schedule.num_chunks = collective.num_chunks();
    const auto add = [&](int32_t src, int32_t dst, TransferOp op, int32_t step) {
      schedule.Add(ChunkId(0), 1, Rank(src), Rank(dst), LinkBetween(topology, Rank(src), Rank(dst)), op,
                   step);
    };
    for (int32_t dst = 0; dst < 3; ++dst) {
      const bool adds = dst == 1 || all_add;
      for (int32_t src = 0; src < 3; ++src)
        if (src != dst && adds) add(src, dst, TransferOp::kReduce, 0);
      if (!adds && kind == CollectiveKind::kAllreduce) add(1, dst, TransferOp::kCopy, 1);
    }
    Normalize(schedule);
    const Program program = LowerChecked(schedule, collective, topology, {.form = {{.fuse = false}}}).value();
    EXPECT_EQ(FirstOf(VerifyProgram(program, collective, topology)), "");
    CheckRuns(program, collective, {.size_bytes = 100});
    for (const Threadblock& block : program.ranks[Rank(1)].threadblocks)
      for (const Instruction& i : block.instructions)
        if (Receives(i.op) && i.first)
          return block.recv_group ? program.groups[static_cast<size_t>(*block.recv_group)].members[0].value
                                  : block.recv_peer->value;
    return -1;
  };
  EXPECT_EQ(first_added(CollectiveKind::kReduce, false), 2);
  EXPECT_EQ(first_added(CollectiveKind::kAllreduce, false), 2);
  EXPECT_EQ(first_added(CollectiveKind::kAllreduce, true), 0);
}

// By step, rank 2 adds up chunk 0 from rank 0 and then rank 1, and chunk 1 from rank 1 and then rank 0. By
// time, ranks 0 and 1 each send first the chunk that needs nothing from rank 3, which rank 2 takes second.
TEST(Lower, PartialSumsThatCrossDoNotHoldEachOtherUp) {
  const Topology topology = FullMesh(4);
  const Collective collective = MakeCollective(CollectiveKind::kReduce, 4).WithChunks(2);
  Schedule schedule;
  schedule.num_chunks = 2;
  const auto add = [&](int32_t chunk, int32_t src, int32_t dst, int32_t step) {
    schedule.Add(ChunkId(chunk), 1, Rank(src), Rank(dst), LinkBetween(topology, Rank(src), Rank(dst)),
                 TransferOp::kReduce, step);
  };
  add(0, 3, 0, 0), add(1, 3, 1, 0);
  add(0, 0, 2, 1), add(1, 1, 2, 2), add(0, 1, 2, 3), add(1, 0, 2, 4);
  Normalize(schedule);
  const Program program = LowerChecked(schedule, collective, topology, {.form = {{.fuse = false}}}).value();
  EXPECT_EQ(FirstOf(VerifyProgram(program, collective, topology)), "");
  CheckRuns(program, collective, {.size_bytes = 100});
  for (int32_t r : {0, 1})
    for (const Threadblock& block : program.ranks[Rank(r)].threadblocks)
      EXPECT_TRUE(block.send_peer != Rank(2) || block.instructions.front().src.slot == 1 - r);
  EXPECT_LE(SimulateProgram(program, collective, topology, {}).value().time_ps,
            Simulate(schedule, collective, topology, {}).time_ps * 101 / 100);
}

// Threadblocks whose connections begin with one link take turns; threadblocks with links of their own need
// not.
TEST(Lower, PacingOrdersSendsOnOneLink) {
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 4);
  const auto dependencies = [&](const Topology& topology, bool pace) {
    const Schedule schedule = *HandSchedule(Algorithm::kDirect, collective, topology);
    const Program program = LowerChecked(schedule, collective, topology, {.form = {{.pace = pace}}}).value();
    EXPECT_EQ(FirstOf(VerifyProgram(program, collective, topology)), "");
    return program.dependencies.size();
  };
  EXPECT_EQ(dependencies(OneSwitch(4), false), 0u);
  EXPECT_EQ(dependencies(OneSwitch(4), true), 2u);
  EXPECT_EQ(dependencies(FullMesh(4), true), 0u);
}

// Every connection of a tree on direct links carries the whole buffer.
TEST(Lower, InstancesSendHalfAMebibyteEach) {
  const Topology topology = FullMesh(8);
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 8);
  const Schedule schedule = *HandSchedule(Algorithm::kTree, collective, topology);
  const auto instances = [&](int64_t size_bytes) {
    return LowerChecked(schedule, collective, topology, {.size_bytes = size_bytes}).value().instances;
  };
  EXPECT_EQ(instances(64 << 10), 1);
  EXPECT_EQ(instances(1 << 20), 2);
  EXPECT_EQ(instances(64 << 20), 2);
}

// At large sizes a lowered program takes about as long as its schedule says.
TEST(Lower, ProgramsKeepTheTimeOfTheirSchedule) {
  for (const Topology& topology : {OneSwitch(8), FullMesh(6)}) {
    for (CollectiveKind kind :
         {CollectiveKind::kAllgather, CollectiveKind::kAllreduce, CollectiveKind::kReduceScatter,
          CollectiveKind::kBroadcast, CollectiveKind::kReduce, CollectiveKind::kAlltoall}) {
      for (Algorithm algorithm : kAlgorithms) {
        const Collective collective = MakeCollective(kind, topology.num_ranks());
        const Schedule schedule = *HandSchedule(algorithm, collective, topology);
        const Program program = LowerChecked(schedule, collective, topology).value();
        const int64_t planned = Simulate(schedule, collective, topology, {}).time_ps;
        const int64_t lowered = SimulateProgram(program, collective, topology, {}).value().time_ps;
        EXPECT_LE(static_cast<double>(lowered), 1.05 * static_cast<double>(planned))
            << ToString(kind) << " " << ToString(algorithm) << " on " << topology.num_ranks();
      }
    }
  }
}

}  // namespace
}  // namespace xccl
