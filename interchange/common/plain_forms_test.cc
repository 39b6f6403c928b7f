#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "interchange/common/instances_apart.h"
#include "interchange/common/member_by_member.h"
#include "interchange/common/spread_channels.h"
#include "ir/lower/testing/checked.h"
#include "ir/schedule.h"
#include "ir/testing/check_runs.h"
#include "ir/testing/programs.h"
#include "ir/verify/verify_program.h"
#include "ir/violation.h"

namespace xccl {
namespace {

void Check(const Program& program, const Collective& collective, const Topology& topology) {
  const std::vector<Violation> wrong = VerifyProgram(program, collective, topology);
  ASSERT_TRUE(wrong.empty()) << ToString(wrong.front());
  CheckRuns(program, collective, {.size_bytes = 9216});
}

// Checks the programs of all collectives and hand-written algorithms on four ranks, with 1 and 3 chunks.
void ForPrograms(const std::function<void(const LoweredProgram&, const Topology&)>& check) {
  const Topology mesh = FullMesh(4);
  for (const CollectiveKind kind : AllNamedCollectives())
    for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree})
      for (const int32_t chunks : {1, 3}) {
        const Collective collective = MakeCollective(kind, 4).WithChunks(chunks);
        const std::optional<Schedule> schedule = HandSchedule(algorithm, collective, mesh);
        if (!schedule) continue;
        const StatusOr<LoweredProgram> lowered = LowerFoldedChecked(*schedule, collective, mesh);
        ASSERT_TRUE(lowered.ok()) << lowered.status().message();
        check(*lowered, mesh);
      }
}

// Every rank sends all its data to every other rank, and each adds up what it receives in one order.
TEST(PlainFormsTest, FanInsAreWrittenOut) {
  const Topology mesh = FullMesh(4);
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 4).WithChunks(3);
  Schedule schedule;
  schedule.num_chunks = 3;
  for (Rank from(0); from.value < 4; ++from.value)
    for (Rank to(0); to.value < 4; ++to.value)
      if (from != to)
        schedule.Add(ChunkId(0), 3, from, to, LinkBetween(mesh, from, to), TransferOp::kReduce, 0);
  const StatusOr<LoweredProgram> lowered = LowerFoldedChecked(schedule, collective, mesh);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_EQ(lowered->program.groups.size(), 4U);
  const Program apart = WithoutFanIns(lowered->program, lowered->collective);
  EXPECT_TRUE(apart.groups.empty());
  EXPECT_EQ(apart.ranks[Rank(0)].threadblocks.size(),
            lowered->program.ranks[Rank(0)].threadblocks.size() + 2);
  ProgramRecord record{Traffic(lowered->collective.num_chunks())};
  EXPECT_TRUE(VerifyProgram(apart, lowered->collective, mesh, &record).empty());
  EXPECT_TRUE(record.bitwise_same);
  Check(apart, lowered->collective, mesh);
}

TEST(PlainFormsTest, ProgramsWithoutFanInsStayAsTheyAre) {
  ForPrograms([](const LoweredProgram& lowered, const Topology&) {
    EXPECT_EQ(WithoutFanIns(lowered.program, lowered.collective), lowered.program);
  });
}

// One rank sums the other ranks' values and its own, which has any place in the order; it may send the sum.
TEST(PlainFormsTest, TheOwnValueKeepsItsPlace) {
  const Topology mesh = FullMesh(4);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kReduce;
  spec.ranks = AllRanks(4);
  for (const bool sends : {false, true})
    for (const bool stores : {false, true})
      for (int32_t own = 0; own <= 2; ++own) {
        if (!sends && !stores) continue;
        // Ranks 1 and 2 send to rank 0, which sends to rank 3 or is the root itself.
        spec.root = Rank(sends ? 3 : 0);
        spec.ranks = AllRanks(4);
        const Collective collective = Collective::Create(spec).value().WithChunks(2);
        Program program;
        program.ranks = IdVector<Rank, RankProgram>(4);
        program.in_place = true;
        Instruction send, sum, receive;
        send.op = Opcode::kSend;
        send.count = sum.count = receive.count = 2;
        send.first = true;
        sum.op = !sends   ? Opcode::kRecvReduceCopy
                 : stores ? Opcode::kRecvReduceCopySend
                          : Opcode::kRecvReduceSend;
        sum.first = true;
        if (sends && stores) {
          sum.dst = {BufferKind::kScratch, 0};
          program.ranks[Rank(0)].scratch = {ChunkId(0), ChunkId(1)};
        } else if (stores) {
          sum.dst = {BufferKind::kOutput, 0};
        }
        Threadblock adds;
        adds.recv_group = 0;
        adds.instructions = {sum};
        std::vector<Rank> members = {Rank(2), Rank(1)};
        if (!sends) members.push_back(Rank(3));
        for (int32_t r = 1; r < 4; ++r)
          program.connections.push_back({Rank(r), Rank(0), 0, LinkBetween(mesh, Rank(r), Rank(0))});
        if (sends) {
          program.connections.pop_back();
          program.connections.insert(program.connections.begin(),
                                     {Rank(0), Rank(3), 0, LinkBetween(mesh, Rank(0), Rank(3))});
          adds.send_peer = Rank(3);
          Threadblock takes;
          takes.recv_peer = Rank(0);
          receive.op = Opcode::kRecvReduceCopy;
          receive.first = receive.final = true;
          receive.dst = {BufferKind::kOutput, 0};
          takes.instructions = {receive};
          program.ranks[Rank(3)].threadblocks = {takes};
        } else {
          adds.instructions[0].final = true;
        }
        for (const Rank member : members) {
          Threadblock gives;
          gives.send_peer = Rank(0);
          gives.instructions = {send};
          program.ranks[member].threadblocks = {gives};
        }
        program.groups = {{Group::Kind::kFanIn, Rank(0), members, 0, {}, own}};
        program.ranks[Rank(0)].threadblocks = {adds};
        Check(program, collective, mesh);
        const Program apart = WithoutFanIns(program, collective);
        EXPECT_TRUE(apart.groups.empty());
        Check(apart, collective, mesh);
      }
}

TEST(PlainFormsTest, InstancesAreThreadblocksOfTheirOwn) {
  ForPrograms([&](const LoweredProgram& lowered, const Topology& mesh) {
    const Program plain = WithoutFanIns(lowered.program, lowered.collective);
    for (const int32_t copies : {1, 2, 3}) {
      const LoweredProgram apart = WithInstancesApart(plain, lowered.collective, copies);
      EXPECT_EQ(apart.program.instances, 1);
      EXPECT_EQ(apart.collective.num_chunks(), copies * lowered.collective.num_chunks());
      EXPECT_EQ(apart.program.ranks[Rank(0)].threadblocks.size(),
                copies * plain.ranks[Rank(0)].threadblocks.size());
      Check(apart.program, apart.collective, mesh);
    }
  });
}

TEST(PlainFormsTest, ChannelsHaveFewPeers) {
  int32_t changed = 0;
  ForPrograms([&](const LoweredProgram& lowered, const Topology& mesh) {
    for (const int32_t copies : {1, 2}) {
      const LoweredProgram apart = WithInstancesApart(lowered.program, lowered.collective, copies);
      EXPECT_EQ(WithFewPeersOnAChannel(apart.program, 3), apart.program);
      for (const int32_t most : {1, 2}) {
        const Program spread = WithFewPeersOnAChannel(apart.program, most);
        Check(spread, apart.collective, mesh);
        if (spread == apart.program) continue;  // one threadblock joins too many
        ++changed;
        std::map<std::tuple<Rank, int32_t, bool>, int32_t> peers;
        for (const Connection& c : spread.connections) {
          EXPECT_LE((++peers[{c.src, c.channel, true}]), most);
          EXPECT_LE((++peers[{c.dst, c.channel, false}]), most);
        }
      }
    }
  });
  EXPECT_GE(changed, 10);
}

}  // namespace
}  // namespace xccl
