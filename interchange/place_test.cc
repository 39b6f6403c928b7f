#include "interchange/place.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/lower/testing/checked.h"
#include "ir/testing/programs.h"
#include "ir/verify/verify_plan.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

Topology Machine(const std::string& name) { return LoadTopology(name).value(); }

// As a file would say it: without paths.
Imported Foreign(LoweredProgram lowered) {
  for (Connection& connection : lowered.program.connections) connection.path.clear();
  return {.format = "test", .name = "", .lowered = std::move(lowered)};
}

TEST(PlaceTest, ProgramsGetASchedule) {
  const Topology mesh = FullMesh(4);
  int32_t programs = 0;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAlltoall, CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
    for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
      const Collective collective = MakeCollective(kind, 4).WithChunks(3);
      const std::optional<Schedule> schedule = HandSchedule(algorithm, collective, mesh);
      if (!schedule) continue;
      const StatusOr<LoweredProgram> lowered = LowerFoldedChecked(*schedule, collective, mesh);
      ASSERT_TRUE(lowered.ok()) << lowered.status().message();
      if (!lowered->program.groups.empty()) continue;
      for (const char* machine : {"full-mesh:4", "nvswitch:4"}) {
        const StatusOr<Plan> plan = PlaceOnMachine(Foreign(*lowered), Machine(machine));
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        EXPECT_TRUE(VerifyPlan(*plan).empty());
        EXPECT_LE(plan->schedule.num_steps(), schedule->num_steps() * 3);
        ++programs;
      }
    }
  }
  EXPECT_GE(programs, 30);
}

// A threadblock of rank 0 names a peer of whom nothing comes.
TEST(PlaceTest, PeersWithoutAMessageNeedNoPath) {
  const Topology mesh = FullMesh(3);
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 3);
  const StatusOr<LoweredProgram> lowered =
      LowerFoldedChecked(*HandSchedule(Algorithm::kDirect, collective, mesh), collective, mesh);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  Imported silent = Foreign(*lowered);
  Program& program = silent.lowered.program;
  Threadblock& block = program.ranks[Rank(0)].threadblocks.emplace_back();
  block.recv_peer = Rank(1);
  block.channel = 9;
  program.connections.push_back({Rank(1), Rank(0), block.channel, {}});
  std::ranges::sort(program.connections, {},
                    [](const Connection& c) { return std::tuple(c.src, c.dst, c.channel); });
  const StatusOr<Plan> plan = PlaceOnMachine(silent, mesh);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->program->program.connections.size(), lowered->program.connections.size());
}

// Paths that a file says are taken where they are the machine's; else all are chosen anew.
TEST(PlaceTest, PathsOfTheFileAreTakenWhereTheyFit) {
  const Topology mesh = FullMesh(4);
  const Collective collective = MakeCollective(CollectiveKind::kAllgather, 4);
  const StatusOr<LoweredProgram> lowered =
      LowerFoldedChecked(*HandSchedule(Algorithm::kDirect, collective, mesh), collective, mesh);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  Imported told{.format = "test", .name = "", .lowered = *lowered};
  std::vector<std::string> warnings;
  const StatusOr<Plan> plan = PlaceOnMachine(told, mesh, &warnings);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->program->program, lowered->program);
  EXPECT_TRUE(warnings.empty());
  told.lowered.program.connections[3].path = {LinkId(1 << 30)};
  const StatusOr<Plan> other = PlaceOnMachine(told, mesh, &warnings);
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ(other->program->program, lowered->program);
  EXPECT_EQ(warnings,
            std::vector<std::string>{"the file names 12 paths of a machine, which are not all paths "
                                     "of " +
                                     mesh.name() + ": others are chosen"});
}

// Both ranks swap their sums: each sends before it adds, in one step.
TEST(PlaceTest, AnExchangeIsOneStep) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllreduce;
  spec.ranks = AllRanks(2);
  LoweredProgram swap{Collective::Create(spec).value(), {}};
  swap.program.ranks = IdVector<Rank, RankProgram>(2);
  swap.program.connections = {{Rank(0), Rank(1), 0, {}}, {Rank(1), Rank(0), 0, {}}};
  for (Rank r(0); r.value < 2; ++r.value) {
    Threadblock block;
    block.send_peer = block.recv_peer = Rank(1 - r.value);
    Instruction send, add;
    send.op = Opcode::kSend;
    add.op = Opcode::kRecvReduceCopy;
    send.count = add.count = 1;
    send.first = add.first = add.final = true;
    add.dst = {BufferKind::kOutput, 0};
    block.instructions = {send, add};
    swap.program.ranks[r].threadblocks = {block};
  }
  const StatusOr<Plan> plan = PlaceOnMachine(Foreign(swap), FullMesh(2));
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->schedule.num_steps(), 1);
  EXPECT_EQ(plan->bitwise_same, true);
}

// Two connections between the same ranks take different ones of two equal switches.
TEST(PlaceTest, ConnectionsSpreadOverEqualPaths) {
  TopologySpec spec;
  spec.name = "two-switches";
  spec.hosts.push_back({"h0"});
  for (const char* gpu : {"0", "1"}) spec.nodes.push_back({NodeKind::kGpu, gpu, HostId(0), false, false});
  for (const char* s : {"a", "b"}) spec.nodes.push_back({NodeKind::kSwitch, s, HostId(0), false, false});
  for (const int64_t s : {2, 3}) {
    spec.links.push_back({NodeId(0), NodeId(s), 1000, 0, 0});
    spec.links.push_back({NodeId(s), NodeId(1), 1000, 0, 0});
  }
  CollectiveSpec of;
  of.kind = CollectiveKind::kBroadcast;
  of.ranks = AllRanks(2);
  of.root = Rank(0);
  LoweredProgram lowered{Collective::Create(of).value().WithChunks(2), {}};
  lowered.program.ranks = IdVector<Rank, RankProgram>(2);
  Instruction copy;
  copy.op = Opcode::kCopy;
  copy.count = 2;
  copy.dst = {BufferKind::kOutput, 0};
  Threadblock local;
  local.instructions = {copy};
  lowered.program.ranks[Rank(0)].threadblocks = {local};
  for (const int32_t channel : {0, 1}) {
    lowered.program.connections.push_back({Rank(0), Rank(1), channel, {}});
    Threadblock sends, receives;
    sends.send_peer = Rank(1);
    receives.recv_peer = Rank(0);
    sends.channel = receives.channel = channel;
    Instruction send, receive;
    send.op = Opcode::kSend;
    receive.op = Opcode::kRecv;
    send.count = receive.count = 1;
    send.src = {BufferKind::kInput, channel};
    receive.dst = {BufferKind::kOutput, channel};
    sends.instructions = {send};
    receives.instructions = {receive};
    lowered.program.ranks[Rank(0)].threadblocks.push_back(sends);
    lowered.program.ranks[Rank(1)].threadblocks.push_back(receives);
  }
  const Topology machine = Topology::Create(spec).value();
  const StatusOr<Plan> plan = PlaceOnMachine(Foreign(lowered), machine);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const std::vector<Connection>& connections = plan->program->program.connections;
  EXPECT_NE(connections[0].path, connections[1].path);
}

TEST(PlaceTest, MachinesMustHaveTheRanksAndTheirPaths) {
  const Topology mesh = FullMesh(4);
  const Collective collective = MakeCollective(CollectiveKind::kAlltoall, 4);
  const StatusOr<LoweredProgram> lowered =
      LowerFoldedChecked(HandSchedule(Algorithm::kDirect, collective, mesh).value(), collective, mesh);
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(PlaceOnMachine(Foreign(*lowered), Machine("ring:5")).status().message(),
            "ring:5: 5 ranks; expected 4, as the plan has");
  EXPECT_EQ(
      PlaceOnMachine(Foreign(*lowered), Machine("ring:4")).status().message(),
      "rank 0 -> rank 2: no path on ring:4 that passes no other GPU; expected one for every connection");
}

// An allreduce on three ranks in which ranks 0 and 1 run the given instructions; its results do not matter.
Imported Told(const std::vector<Instruction>& of_rank_0, const std::vector<Instruction>& of_rank_1) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllreduce;
  spec.ranks = AllRanks(3);
  LoweredProgram lowered{Collective::Create(spec).value().WithChunks(2), {}};
  Program& program = lowered.program;
  program.ranks = IdVector<Rank, RankProgram>(3);
  program.connections = {{Rank(0), Rank(1), 0, {}}, {Rank(1), Rank(0), 0, {}}, {Rank(1), Rank(2), 0, {}}};
  Threadblock zero, to_zero, to_two, two;
  zero.send_peer = zero.recv_peer = Rank(1);
  zero.instructions = of_rank_0;
  to_two.recv_peer = Rank(0);
  to_two.send_peer = Rank(2);
  to_two.instructions = of_rank_1;
  to_zero.send_peer = Rank(0);
  two.recv_peer = Rank(1);
  for (const Instruction& i : of_rank_0)
    if (Receives(i.op)) {
      Instruction send;
      send.op = Opcode::kSend;
      send.count = 1;
      to_zero.instructions.push_back(send);
    }
  for (const Instruction& i : of_rank_1)
    if (Sends(i.op)) {
      Instruction receive;
      receive.op = Opcode::kRecv;
      receive.count = 1;
      receive.dst = {BufferKind::kOutput, static_cast<int32_t>(two.instructions.size())};
      two.instructions.push_back(receive);
    }
  program.ranks[Rank(0)].threadblocks = {zero};
  program.ranks[Rank(1)] = {.scratch = {ChunkId(0)}, .threadblocks = {to_two, to_zero}};
  program.ranks[Rank(2)].threadblocks = {two};
  return Foreign(std::move(lowered));
}

Instruction Do(Opcode op, BufferKind src, BufferKind dst) {
  Instruction i;
  i.op = op;
  i.count = 1;
  if (ReadsSource(op)) i.src = {src, 0};
  if (WritesDestination(op)) i.dst = {dst, 0};
  return i;
}

TEST(PlaceTest, NamesWhatNoScheduleSays) {
  using enum BufferKind;
  using enum Opcode;
  const Topology mesh = FullMesh(3);
  const auto refused = [&](const std::vector<Instruction>& zero, const std::vector<Instruction>& one) {
    return PlaceOnMachine(Told(zero, one), mesh).status().message();
  };
  const Instruction send = Do(kSend, kInput, kOutput);
  // Rank 1 sends the sum of its own and rank 0's contribution, then rank 0's alone.
  EXPECT_EQ(refused({send},
                    {Do(kRecv, kInput, kOutput), Do(kCopy, kInput, kScratch), Do(kReduce, kOutput, kScratch),
                     Do(kSend, kScratch, kOutput), Do(kSend, kOutput, kOutput)}),
            "rank 1 threadblock 0 instruction 4 sends one sum of chunk 0 beside others that the rank keeps; "
            "expected one value of a chunk on a rank at a time, as a schedule has");
  EXPECT_EQ(
      refused({send}, {Do(kRecv, kInput, kScratch)}),
      "rank 1 receives a sum of chunk 0 from rank 0 and does not use it; expected that all messages are "
      "used");
  // Rank 0's first message waits at rank 1 until rank 0's sum, in which it is, has been sent on.
  EXPECT_EQ(refused({send, Do(kRecvReduceCopy, kInput, kOutput), Do(kSend, kOutput, kOutput)},
                    {Do(kRecv, kInput, kScratch), Do(kRecv, kInput, kOutput), Do(kSend, kOutput, kOutput),
                     Do(kSend, kScratch, kOutput)}),
            "chunk 0: no step for a message from rank 1 to rank 0: a rank replaces what it has sent before "
            "the receiver uses it; expected messages whose steps have an order");
}

}  // namespace
}  // namespace xccl
