#include "interchange/mscclpp/read.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interchange/common/foreign.h"
#include "interchange/mscclpp/file.h"
#include "interchange/mscclpp/json.h"
#include "interchange/mscclpp/test_plans.h"
#include "interchange/place.h"
#include "ir/lower/testing/checked.h"
#include "ir/plan.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "ir/testing/check_runs.h"
#include "ir/testing/programs.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

TEST(MscclppReadTest, ProgramsComeBack) {
  const Topology mesh = FullMesh(4);
  int32_t programs = 0;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAlltoall, CollectiveKind::kBroadcast, CollectiveKind::kReduce,
        CollectiveKind::kGather, CollectiveKind::kScatter}) {
    for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
      const Collective collective = MakeCollective(kind, 4).WithChunks(3);
      const std::optional<Schedule> schedule = HandSchedule(algorithm, collective, mesh);
      if (!schedule) continue;
      StatusOr<LoweredProgram> lowered = LowerFoldedChecked(*schedule, collective, mesh);
      ASSERT_TRUE(lowered.ok()) << lowered.status().message();
      for (const auto& [protocol, ports, in_place] :
           {std::tuple(Protocol::kSimple, false, false), std::tuple(Protocol::kSimple, true, false),
            std::tuple(Protocol::kLl, false, false), std::tuple(Protocol::kSimple, false, true)}) {
        if (in_place && !lowered->program.in_place) continue;
        SCOPED_TRACE(std::string(ToString(kind)) + " " + std::string(ToString(algorithm)) + " " +
                     std::string(ToString(protocol)) + (ports ? " ports" : "") +
                     (in_place ? " in place" : ""));
        lowered->program.protocol = protocol;
        MscclppOptions options{.in_place = in_place};
        if (ports) options.domains = {0, 0, 1, 1};
        const StatusOr<MscclppJson> json = WriteMscclppJson(lowered->program, lowered->collective, options);
        ASSERT_TRUE(json.ok()) << json.status().message();
        const StatusOr<Imported> read = ReadMscclppJson(json->text, {.root = Rank(2)});
        ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << json->text;
        EXPECT_EQ(read->lowered.program.protocol, protocol);
        ++programs;
        CheckRuns(read->lowered);
      }
    }
  }
  EXPECT_GE(programs, 60);
}

TEST(MscclppReadTest, PlansOfOtherStylesAreRead) {
  for (const auto& [name, file] :
       {std::pair("rres", ReadAndReduce(4)), std::pair("packets", AllPairsOfPackets(4)),
        std::pair("groups", GroupsOfBlocks(3)), std::pair("switch", OverASwitch(4))}) {
    SCOPED_TRACE(name);
    const StatusOr<Imported> read = ReadMscclppJson(WriteFile(file), {});
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->format, "MSCCL++ plan");
    CheckRuns(read->lowered);
  }
}

// In place the sum is stored over the rank's own input, which it adds in its turn.
TEST(MscclppReadTest, OwnInputsAreAddedInTheirTurnInPlace) {
  File file = AllToAll("allreduce", 3, 1, 1, 2, kScratch);
  file.in_place = true;
  for (size_t r = 0; r < 3; ++r) {
    std::vector<Op>& ops = file.gpus[r].blocks[0].ops;
    ops = {Sync(OpName::kSignal, {0, 1}), Sync(OpName::kWait, {0, 1}), {}};
    for (int32_t p = 0; p < 2; ++p) {
      const size_t peer = static_cast<size_t>(p) < r ? static_cast<size_t>(p) : static_cast<size_t>(p) + 1;
      ops.push_back(Data(OpName::kPut, {Local(kIn, 0)},
                         {Remote(p, r < peer ? static_cast<int64_t>(r) : static_cast<int64_t>(r) - 1)}));
    }
    Op sum = Data(OpName::kRe, {Local(kScratch, 0), Local(kScratch, 1)}, {Local(kOut, 0)});
    sum.src.insert(sum.src.begin() + static_cast<std::ptrdiff_t>(r), Local(kIn, 0));
    sum.type = ChannelType::kNone;
    ops.insert(ops.end(), {Op{}, Sync(OpName::kSignal, {0, 1}), Sync(OpName::kWait, {0, 1}), Op{}, sum});
  }
  const StatusOr<Imported> read = ReadMscclppJson(WriteFile(file), {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  CheckRuns(read->lowered);
}

// ---- on a machine ----

// Every rank has a group in which the switch reduces, and one in which it stores in all outputs.
TEST(MscclppReadTest, SwitchesAreGroupsOnMachinesThatHaveThem) {
  const std::string text = WriteFile(OverASwitch(8));
  const StatusOr<Imported> read = ReadMscclppJson(text, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->lowered.program.groups.size(), 16U);
  for (const Group& group : read->lowered.program.groups) EXPECT_EQ(group.members.size(), 7U);
  CheckRuns(read->lowered);
  const Topology h100 = LoadTopology("dgx-h100").value(), a100 = LoadTopology("dgx-a100").value();
  std::vector<std::string> warnings;
  const StatusOr<Plan> placed = PlaceOnMachine(*read, h100, &warnings);
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  EXPECT_TRUE(warnings.empty());
  // A step of 8 reductions and one of 8 multicasts, each with a tree of 8 links.
  EXPECT_EQ(placed->schedule.num_steps(), 2);
  EXPECT_EQ(placed->schedule.size(), 16);
  for (int32_t p = 0; p < placed->schedule.paths.size(); ++p)
    EXPECT_EQ(placed->schedule.paths[PathId(p)].size(), 8U);
  EXPECT_EQ(
      PlaceOnMachine(*read, a100).status().message(),
      "the multicast of rank 0 and 7 others: no switch on dgx-a100 that does it has links to all of them; "
      "expected one");
  const StatusOr<Imported> plain = ReadMscclppJson(text, {.plain_switches = true});
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_TRUE(plain->lowered.program.groups.empty());
  CheckRuns(plain->lowered);
  EXPECT_TRUE(PlaceOnMachine(*plain, a100).ok());
}

// A switch that no more than two ranks share is a pair of connections.
TEST(MscclppReadTest, SwitchesOfTwoRanksAreNoGroups) {
  const StatusOr<Imported> read = ReadMscclppJson(WriteFile(OverASwitch(2)), {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read->lowered.program.groups.empty());
  CheckRuns(read->lowered);
}

// A part of three chunks and one of one: a message is three equal pieces, which are read as one again.
TEST(MscclppReadTest, PiecesOfAMessageAreOne) {
  const Topology mesh = FullMesh(4);
  const Collective collective =
      MakeCollective(CollectiveKind::kAllgather, 4).WithWeights({{3, 1}, {3, 1}, {3, 1}, {3, 1}});
  const std::optional<Schedule> schedule = HandSchedule(Algorithm::kRing, collective, mesh);
  ASSERT_TRUE(schedule);
  StatusOr<LoweredProgram> lowered = LowerFoldedChecked(*schedule, collective, mesh, {.fold = false});
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  lowered->program.segment_bytes = 3 * 4096;
  lowered->program.instances = 2;
  const StatusOr<MscclppJson> json = WriteMscclppJson(lowered->program, lowered->collective, {});
  ASSERT_TRUE(json.ok()) << json.status().message();
  // A copy has half of a chunk, and a third of that is a piece: so is its share of a segment.
  EXPECT_NE(json->text.find(R"("iter_context":{"unit_size":4096,"num_chunks":1})"), std::string::npos)
      << json->text;
  const StatusOr<Imported> read = ReadMscclppJson(json->text, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->lowered.program.segment_bytes, 4096);
  // A message for each chunk and copy.
  const auto sent = [](const Program& program) {
    int32_t chunks = 0, messages = 0;
    for (const RankProgram& rank : program.ranks)
      for (const Threadblock& block : rank.threadblocks)
        for (const Instruction& i : block.instructions) {
          chunks += Sends(i.op) ? i.count : 0;
          messages += Sends(i.op) ? 1 : 0;
        }
    return std::pair(chunks, messages);
  };
  EXPECT_EQ(sent(read->lowered.program).second, 2 * sent(lowered->program).first);
  CheckRuns(read->lowered);
}

// ---- what a plan's simulation needs ----

// By rank: the opcodes of every threadblock, in order.
std::vector<std::vector<std::vector<Opcode>>> OpcodesOf(const Program& program) {
  std::vector<std::vector<std::vector<Opcode>>> all;
  for (const RankProgram& rank : program.ranks) {
    std::vector<std::vector<Opcode>>& blocks = all.emplace_back();
    for (const Threadblock& block : rank.threadblocks) {
      std::vector<Opcode>& ops = blocks.emplace_back();
      for (const Instruction& i : block.instructions) ops.push_back(i.op);
    }
    std::ranges::sort(blocks);
  }
  return all;
}

// A receive and the send of its data are read as they were written: as one instruction, as two in a row, or
// as two with other messages between them, where as one the send would come before these, and the threadblock
// would not wait for it.
TEST(MscclppReadTest, DataIsSentOnByAsManyInstructionsAsInTheProgram) {
  const Topology mesh = FullMesh(4);
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 4).WithChunks(3);
  const std::optional<Schedule> schedule = HandSchedule(Algorithm::kRing, collective, mesh);
  ASSERT_TRUE(schedule);
  LowerOptions each{.fold = false};
  each.form = lowering::Form{.merge = 1};
  StatusOr<LoweredProgram> lowered = LowerFoldedChecked(*schedule, collective, mesh, each);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  Program& program = lowered->program;
  program.slots = 3;
  program.instances = 1;
  program.segment_bytes = 0;
  enum class Sent { kAtOnce, kNext, kLast };
  const Program joined = program;
  int32_t split = 0;
  for (const Sent sent : {Sent::kAtOnce, Sent::kNext, Sent::kLast}) {
    program = joined;
    for (RankProgram& rank : program.ranks)
      for (Threadblock& block : rank.threadblocks) {
        const std::vector<Instruction> before = std::exchange(block.instructions, {});
        std::vector<Instruction> last;
        for (Instruction i : before) {
          const bool splits = i.op == Opcode::kRecvCopySend && sent != Sent::kAtOnce;
          if (splits) i.op = Opcode::kRecv;
          block.instructions.push_back(i);
          if (!splits) continue;
          Instruction send;
          send.op = Opcode::kSend;
          send.count = i.count;
          send.src = i.dst;
          (sent == Sent::kNext ? block.instructions : last).push_back(send);
          ++split;
        }
        block.instructions.insert(block.instructions.end(), last.begin(), last.end());
      }
    const StatusOr<MscclppJson> json = WriteMscclppJson(program, lowered->collective, {});
    ASSERT_TRUE(json.ok()) << json.status().message();
    const StatusOr<Imported> read = ReadMscclppJson(json->text, {});
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(OpcodesOf(read->lowered.program), OpcodesOf(program)) << static_cast<int>(sent);
    CheckRuns(read->lowered);
  }
  EXPECT_EQ(split, 12);
}

// Two instances have two shares of every chunk, so that a message of several chunks is as many pieces.
TEST(MscclppReadTest, EveryPieceThatLiesApartTakesASlot) {
  const Topology mesh = FullMesh(4);
  int32_t with_pieces = 0;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter, CollectiveKind::kAlltoall,
        CollectiveKind::kBroadcast, CollectiveKind::kGather, CollectiveKind::kScatter})
    for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree})
      for (const int32_t instances : {1, 2}) {
        const Collective collective = MakeCollective(kind, 4).WithChunks(3);
        const std::optional<Schedule> schedule = HandSchedule(algorithm, collective, mesh);
        if (!schedule) continue;
        SCOPED_TRACE(std::string(ToString(kind)) + " " + std::string(ToString(algorithm)));
        StatusOr<LoweredProgram> lowered = LowerFoldedChecked(*schedule, collective, mesh);
        ASSERT_TRUE(lowered.ok()) << lowered.status().message();
        Program& program = lowered->program;
        program.segment_bytes = 4096;
        program.instances = instances;
        const StatusOr<MscclppJson> json = WriteMscclppJson(program, lowered->collective, {});
        ASSERT_TRUE(json.ok()) << json.status().message();
        const StatusOr<Imported> read = ReadMscclppJson(json->text, {.root = Rank(2)});
        ASSERT_TRUE(read.ok()) << read.status().message();
        const int32_t slots = AsRunByMscclpp(program, {}).slots;
        EXPECT_EQ(read->lowered.program.slots, slots);
        with_pieces += slots > program.slots ? 1 : 0;
      }
  EXPECT_GE(with_pieces, 1);
}

// ---- refusals ----

// For the writer: a reader does not get so far.
TEST(MscclppReadTest, BuffersOfTooManyChunksAreRefused) {
  const File file = AllToAll("allgather", 2, 1 << 16, (1 << 16) + 1, 1 << 16, kOut);
  EXPECT_EQ(
      mscclpp::CheckLimits(file, "p").message(),
      "p: rank 0: 65537 chunks of output; expected 65536 at most: the executor selects a plan for multiples "
      "of their number alone; hint: fewer --chunks");
}

struct Wrong {
  const char* what;
  std::function<void(File&)> spoil;
  const char* message;
};
TEST(MscclppReadTest, WhatTheExecutorWouldRunWronglyIsRefused) {
  ASSERT_EQ(Refused(Swap()), "");
  const std::vector<Wrong> all = {
      {"no signal after the put", [](File& f) { Ops(f).erase(Ops(f).begin() + 5); },
       "p: rank 1 threadblock 0 op 6 (wait): waits forever; expected as many signals, releases or packets as "
       "are "
       "waited for"},
      {"a signal too many", [](File& f) { Ops(f).push_back(Sync(OpName::kSignal, {0})); },
       "p: rank 1: memory channel 0: 1 signals that nothing waits for; expected none: they end a wait of the "
       "next "
       "call"},
      {"no wait for the data", [](File& f) { Ops(f).erase(Ops(f).begin() + 6); },
       "p: rank 1 threadblock 0 op 3 (put): nothing at rank 0 waits for what it puts into chunk 1 of the "
       "output; "
       "expected a signal and a wait"},
      {"no nop before the signal", [](File& f) { Ops(f).erase(Ops(f).begin() + 4); },
       "p: rank 0 threadblock 0 op 4 (signal): signals what op 3 puts without a nop between them; expected "
       "one"},
      {"no nop between dependent ops",
       [](File& f) { Ops(f).push_back(Data(OpName::kCopy, {Local(kOut, 0)}, {Local(kScratch, 0)})); },
       "p: rank 0 threadblock 0 op 8 (copy): races with rank 0 threadblock 0 op 7 (copy) for chunk 0 of rank "
       "0's "
       "output; expected a nop, a barrier or signals between them"},
      {"the other's data is read without a nop",
       [](File& f) { Ops(f).push_back(Data(OpName::kCopy, {Local(kOut, 1)}, {Local(kScratch, 0)})); },
       "p: rank 0 threadblock 0 op 8 (copy): races with rank 1 threadblock 0 op 3 (put) for chunk 1 of rank "
       "0's "
       "output; expected a nop, a barrier or signals between them"},
      {"the wrong place", [](File& f) { Ops(f, 1)[3].dst[0].index = 0; },
       "p: rank 0 threadblock 0 op 7 (copy): races with rank 1 threadblock 0 op 3 (put) for chunk 0 of rank "
       "0's "
       "output; expected a nop, a barrier or signals between them"},
      {"no copy", [](File& f) { Ops(f).pop_back(); }, "p: rank 0 chunk 0 of its output is never written"},
      {"semaphore",
       [](File& f) {
         f.gpus[0].semaphores = {1};
         Ops(f).push_back({.name = OpName::kSemAcquire, .semaphores = {0}});
       },
       "p: rank 0: semaphore 0 ends with 0; expected 1, with which it begins"},
      {"pws", [](File& f) { Ops(f)[3].name = OpName::kPws; },
       "p: rank 0 threadblock 0 op 3 (pws): the executor does not signal over a memory channel; expected "
       "put, nop "
       "and signal"},
      {"pwsf", [](File& f) { Ops(f)[3].name = OpName::kPwsf; },
       "p: rank 0 threadblock 0 op 3 (pwsf): the executor does not signal over a memory channel; expected "
       "put, nop "
       "and signal"},
      {"packets without room",
       [](File& f) { Ops(f).push_back(Data(OpName::kCpkt, {Local(kIn, 0)}, {Local(kScratch, 0)})); },
       "p: rank 0 threadblock 0 op 8 (cpkt): packets with protocol Simple, whose scratch has half of their "
       "room; expected LL"},
      {"get", [](File& f) { Ops(f)[3] = Data(OpName::kGet, {Remote(0, 1)}, {Local(kOut, 0)}); },
       "p: rank 0 threadblock 0 op 3 (get): the executor swaps offsets 1 and 0; expected equal ones, or a "
       "put by "
       "the other rank"},
      {"a source in another buffer",
       [](File& f) {
         Ops(f)[3].src.push_back(Local(kOut, 0));
         Ops(f)[3].dst.push_back(Remote(0, 0));
       },
       "p: rank 0 threadblock 0 op 3 (put): the executor takes all its sources from the first one's buffer; "
       "expected one buffer"},
      {"out of the buffer", [](File& f) { Ops(f)[3].src[0].index = 1; },
       "p: rank 0 threadblock 0 op 3 (put): chunks 1 to 1 of rank 0's input; expected some of its 1"},
      {"sizes",
       [](File& f) {
         Ops(f)[3].dst[0].size = 2;
         Ops(f)[3].dst[0].index = 0;
       },
       "p: rank 0 threadblock 0 op 3 (put): 1 and 2 chunks; expected as many on both sides"},
      {"operands", [](File& f) { Ops(f)[7].dst.clear(); },
       "p: rank 0 threadblock 0 op 7 (copy): dst_buff with other buffers than the executor takes; expected "
       "those "
       "of the op"},
      {"no channel at the other end",
       [](File& f) {
         f.gpus[1].peers[0].clear();
         f.gpus[1].blocks.clear();
       },
       "p: rank 0 threadblock 0 op 0 (signal): rank 1 has no memory channel for this one to rank 1; expected "
       "as "
       "many at both ends"},
      {"unequal buffers", [](File& f) { f.gpus[1].output = 3; },
       "p: rank 1: 1 chunks of input and 3 of output; expected 1 and 2 of a part at all ranks for allgather"},
      {"collective", [](File& f) { f.collective = "sendrecv"; },
       "p: collective: 'sendrecv'; expected allreduce, allgather, reducescatter, broadcast, reduce, gather, "
       "scatter or alltoall; hint: --collective"},
      {"past the end of a pipeline",
       [](File& f) {
         Op pipeline{.name = OpName::kPipeline, .unit_bytes = 16, .unit_chunks = 2};
         pipeline.ops = {Ops(f)[7]};
         Ops(f)[7] = pipeline;
       },
       "p: rank 0 threadblock 0 op 8 (copy): 1 chunks in a pipeline over 2; expected as many: the executor "
       "runs on "
       "past the end"},
      {"units",
       [](File& f) { Ops(f).push_back({.name = OpName::kPipeline, .unit_bytes = 24, .unit_chunks = 1}); },
       "p: rank 0 threadblock 0 op 8 (pipeline): unit_size 24; expected a multiple of 16 below 2^32"},
  };
  for (const Wrong& wrong : all) {
    SCOPED_TRACE(wrong.what);
    File file = Swap();
    wrong.spoil(file);
    EXPECT_EQ(Refused(file), wrong.message);
  }
}

TEST(MscclppReadTest, LimitsHoldAndOneMoreIsRefused) {
  const auto fill = [](File& f, int32_t ops) { Ops(f).resize(static_cast<size_t>(ops)); };
  struct Limit {
    std::function<void(File&, int32_t)> set;
    int32_t most;
    const char* message;
  };
  const std::vector<Limit> all = {
      {fill, 64, "p: rank 0 threadblock 0: 65 ops; expected 64 at most; hint: fewer --chunks"},
      {[](File& f, int32_t n) {
         f.gpus[0].peers[0].assign(static_cast<size_t>(n), 1);
         f.gpus[1].peers[0].assign(static_cast<size_t>(n), 0);
         f.gpus[0].blocks[0].channels[0] = All(n);
       },
       16, "p: rank 0 threadblock 0: 17 memory channels; expected 16 at most"},
      {[](File& f, int32_t n) { f.gpus[0].blocks[0].remotes[0].resize(static_cast<size_t>(n)); }, 16,
       "p: rank 0 threadblock 0: 17 buffers of peers; expected 16 at most"},
      {[](File& f, int32_t n) {
         Ops(f)[0].channels.assign(static_cast<size_t>(n), 0);
         Ops(f, 1).insert(Ops(f, 1).begin() + 2, static_cast<size_t>(n) - 1, Sync(OpName::kWait, {0}));
       },
       8, "p: rank 0 threadblock 0 op 0 (signal): 9 channels; expected 8 at most"},
      {[](File& f, int32_t n) {
         f.gpus[0].semaphores.assign(static_cast<size_t>(n), 0);
         Ops(f).push_back({.name = OpName::kSemRelease, .semaphores = All(n)});
         Ops(f).push_back({.name = OpName::kSemAcquire, .semaphores = All(n)});
       },
       16, "p: rank 0 threadblock 0 op 8 (sem_release): 17 semaphores; expected 16 at most"},
      {[](File& f, int32_t n) {
         Op sum = Data(OpName::kRe, {}, {Local(kScratch, 0)});
         sum.src.assign(static_cast<size_t>(n), Local(kIn, 0));
         f.collective = "broken";
         Ops(f).push_back(sum);
       },
       10, "p: rank 0 threadblock 0 op 8 (re): src_buff with 11 buffers; expected 10 at most"},
      {[](File& f, int32_t n) {
         Ops(f).push_back({.name = OpName::kBarrier, .barrier = n - 1, .barrier_blocks = 1});
       },
       16, "p: rank 0 threadblock 0 op 8 (barrier): barrier 16; expected 0 to 15"},
      {[](File& f, int32_t n) { f.gpus[0].blocks.resize(static_cast<size_t>(n)); }, 320,
       "p: rank 0: 321 threadblocks; expected 320 at most, which wait for each other on 80 multiprocessors; "
       "hint: "
       "plan --max-ctas 320"},
  };
  for (const Limit& limit : all) {
    File most = Swap(), more = Swap();
    limit.set(most, limit.most);
    limit.set(more, limit.most + 1);
    EXPECT_TRUE(mscclpp::CheckLimits(most, "p").ok()) << mscclpp::CheckLimits(most, "p").message();
    EXPECT_EQ(mscclpp::CheckLimits(more, "p").message(), limit.message);
  }
}

TEST(MscclppReadTest, TextsThatAreNoPlansAreRefused) {
  const std::string text = WriteFile(Swap());
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    return ReadMscclppJson(other, {.file = "p"}).status().message();
  };
  EXPECT_EQ(changed("\"protocol\":\"Simple\"", "\"protocol\":\"LL128\""),
            "p: protocol: 'LL128'; expected 'Simple' or 'LL'");
  EXPECT_EQ(changed("\"input_chunks\":1", "\"input_chunks\":0"),
            "p: gpus[0].input_chunks: 0; expected 1..65536");
  EXPECT_EQ(changed("\"input_chunks\":1", "\"input_chunks\":65537"),
            "p: gpus[0].input_chunks: 65537; expected 1..65536");
  EXPECT_EQ(changed("\"name\":\"copy\"", "\"name\":\"copi\""),
            "p: gpus[0].threadblocks[0].ops[7].name: no op 'copi'; did you mean 'copy'?");
  EXPECT_EQ(changed("\"name\":\"copy\"", "\"name\":\"glre\""),
            "p: gpus[0].threadblocks[0].ops[7].name: op 'glre' is not supported; expected another: MSCCL++'s "
            "executor does not load it either");
  EXPECT_EQ(
      changed("\"name\":\"copy\"", "\"name\":\"copy\",\"reduce_op\":\"min\""),
      "p: gpus[0].threadblocks[0].ops[7].reduce_op: 'min'; expected 'sum': the executor adds whatever is "
      "here");
  EXPECT_EQ(changed("\"buffer_alignment\":16", "\"buffer_alignment\":8"),
            "p: buffer_alignment: expected a multiple of 16: the executor adds 16 bytes at a time");
  File none = Swap();
  none.min_bytes = 16;
  none.max_bytes = 2;
  EXPECT_EQ(ReadMscclppJson(WriteFile(none), {.file = "p"}).status().message(),
            "p: max_message_size: 2; expected at least min_message_size, 16");
}

}  // namespace
}  // namespace xccl
