#include "ir/verify/verify_program.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "ir/interpret/interpret.h"
#include "ir/lower/testing/checked.h"
#include "ir/testing/programs.h"

namespace xccl {
namespace {

struct Subject {
  Topology topology;
  Collective collective;
  Program program;
};

Subject Lowered(CollectiveKind kind, Algorithm algorithm, int32_t ranks, int32_t chunks, bool fuse = true) {
  const Topology topology = FullMesh(ranks);
  const Collective collective = MakeCollective(kind, ranks).WithChunks(chunks);
  return {topology, collective,
          LowerChecked(*HandSchedule(algorithm, collective, topology), collective, topology,
                       {.size_bytes = 1024, .form = {{.slots = 2, .fuse = fuse, .pace = false}}})
              .value()};
}

// rank 0: send input 1 | recv_reduce_copy_send input 0 -> output 0 | recv output 1
// rank 1: send input 0 | recv_reduce_copy_send input 1 -> output 1 | recv output 0
Subject Pair() { return Lowered(CollectiveKind::kAllreduce, Algorithm::kRing, 2, 2); }

Threadblock& BlockOf(Program& program, int32_t rank, size_t block = 0) {
  return program.ranks[Rank(rank)].threadblocks[block];
}
Instruction& At(Program& program, int32_t rank, size_t index) {
  return BlockOf(program, rank).instructions[index];
}
void DropDependencies(Program& program) {
  for (RankProgram& rank : program.ranks)
    for (Threadblock& block : rank.threadblocks)
      for (Instruction& i : block.instructions) i.dep_count = 0;
}

// Rank 1 receives the sum into the buffer that it has sent, after rank 0's answer and nothing else.
Subject OrderedByMessages() {
  Subject subject = Lowered(CollectiveKind::kAllreduce, Algorithm::kDirect, 2, 1);
  DropDependencies(subject.program);
  return subject;
}

struct Rejection {
  const char* what;
  std::function<Subject()> subject;
  std::function<void(Program&)> spoil;
  const char* message;
};

const std::vector<Rejection>& Rejections() {
  static const std::vector<Rejection> cases = {
      {"no slots", Pair, [](Program& p) { p.slots = 0; }, "[P1] program: 0 slots; expected 1..1024"},
      {"too many instances", Pair, [](Program& p) { p.instances = 65; },
       "[P1] program: 65 instances; expected 1..64"},
      {"a segment below zero", Pair, [](Program& p) { p.segment_bytes = -1; },
       "[P1] program: segments of -1 bytes; expected at least 0"},
      {"a rank too few", Pair, [](Program& p) { p.ranks.resize(1); },
       "[P1] program: 1 ranks; the collective has rank 1"},
      {"in place without such a form",
       [] { return Lowered(CollectiveKind::kAlltoall, Algorithm::kDirect, 2, 1); },
       [](Program& p) { p.in_place = true; }, "[P1] program: is in place; alltoall has no in-place form"},
      {"connections out of order", Pair, [](Program& p) { std::swap(p.connections[0], p.connections[1]); },
       "[P1] connection 0->1 channel 0: out of order; expected sorted by ranks and channel, each once"},
      {"a connection to nowhere", Pair, [](Program& p) { p.connections[1].dst = Rank(7); },
       "[P1] connection 1->7 channel 0: expected two of the ranks 0..1 and a channel of 0 or more"},
      {"a connection over no links", Pair, [](Program& p) { p.connections[0].path = {}; },
       "[P1] connection 0->1 channel 0: its path has no links"},
      {"a connection over links of no machine", Pair,
       [](Program& p) { p.connections[0].path = {LinkId(99)}; },
       "[P1] connection 0->1 channel 0: its path names link 99; links are 0..1"},
      {"a connection the other way", Pair, [](Program& p) { p.connections[0].path = {LinkId(1)}; },
       "[P1] connection 0->1 channel 0: its path goes from rank 1 to rank 0"},
      {"a connection through a GPU",
       [] { return Lowered(CollectiveKind::kAllgather, Algorithm::kRing, 3, 1); },
       [](Program& p) {
         p.connections[0].path = {LinkId(1), LinkId(5)};
       },
       "[P1] connection 0->1 channel 0: its path passes gpu 2; through a GPU it is two transfers"},
      {"a connection there and back again", Pair,
       [](Program& p) {
         p.connections[0].path = {LinkId(0), LinkId(1), LinkId(0)};
       },
       "[P1] connection 0->1 channel 0: its path passes gpu 0; through a GPU it is two transfers"},
      {"a peer that is the rank", Pair, [](Program& p) { BlockOf(p, 0).send_peer = Rank(0); },
       "[P1] rank 0 threadblock 0: sends to rank 0; expected another of the ranks 0..1"},
      {"a channel without connection", Pair, [](Program& p) { BlockOf(p, 1).channel = 3; },
       "[P1] rank 1 threadblock 0: sends to rank 0 on channel 3; the program has no such connection"},
      {"two threadblocks on one connection", Pair,
       [](Program& p) {
         p.ranks[Rank(0)].threadblocks.push_back({Rank(1), {}, {}, {}, 0, {}});
       },
       "[P1] rank 0 threadblock 1: sends to rank 1 on channel 0, as an earlier threadblock does"},
      {"nobody to send to", Pair, [](Program& p) { BlockOf(p, 0).send_peer.reset(); },
       "[P1] rank 0 threadblock 0 instruction 0: send in a threadblock that sends to nobody"},
      {"nobody to receive from", Pair, [](Program& p) { BlockOf(p, 0).recv_peer.reset(); },
       "[P1] rank 0 threadblock 0 instruction 1: recv_reduce_copy_send in a threadblock that receives from "
       "nobody"},
      {"nothing to send", Pair, [](Program& p) { At(p, 0, 0).count = 0; },
       "[P1] rank 0 threadblock 0 instruction 0: send of 0 chunks; expected at least 1"},
      {"a nop of chunks", Pair,
       [](Program& p) {
         Instruction& nop = p.ranks[Rank(0)].threadblocks.emplace_back().instructions.emplace_back();
         nop.count = 7;
       },
       "[P1] rank 0 threadblock 1 instruction 0: nop of 7 chunks; expected 0"},
      {"a slot beyond the buffer", Pair, [](Program& p) { At(p, 0, 0).src.slot = 5; },
       "[P2] rank 0 threadblock 0 instruction 0: 1 input slots from 5 on; the rank has 2"},
      {"a range beyond the buffer", Pair, [](Program& p) { At(p, 0, 0).count = 2; },
       "[P2] rank 0 threadblock 0 instruction 0: 2 input slots from 1 on; the rank has 2"},
      {"a slot below zero", Pair, [](Program& p) { At(p, 0, 2).dst.slot = -1; },
       "[P2] rank 0 threadblock 0 instruction 2: 1 output slots from -1 on; the rank has 2"},
      {"writing the input", Pair, [](Program& p) { At(p, 0, 2).dst.buffer = BufferKind::kInput; },
       "[P2] rank 0 threadblock 0 instruction 2: writes its input, which is only read"},
      {"scratch for no chunk", Pair, [](Program& p) { p.ranks[Rank(0)].scratch = {ChunkId(9)}; },
       "[P2] rank 0 scratch slot 0: no chunk 9; chunks are 0..1"},
      {"slots of two sizes", Pair, [](Program& p) { At(p, 0, 1).src.slot = 1; },
       "[P2] rank 0 threadblock 0 instruction 1: combines slots of chunks 1 and 0, which differ in size"},
      {"waiting for nothing", Pair,
       [](Program& p) {
         p.dependencies = {{0, 3}};
         At(p, 0, 1).dep_first = 0;
         At(p, 0, 1).dep_count = 1;
       },
       "[P3] rank 0 threadblock 0 instruction 1: waits for threadblock 0 instruction 3, which does not "
       "exist"},
      {"dependencies beyond the list", Pair, [](Program& p) { At(p, 0, 1).dep_count = 2; },
       "[P3] rank 0 threadblock 0 instruction 1: dependencies 0..1; the program has 0"},
      {"waiting for a later instruction", Pair,
       [](Program& p) {
         p.dependencies = {{0, 1}};
         At(p, 0, 0).dep_count = 1;
       },
       "[P3] rank 0 threadblock 0 instruction 0: waits for rank 0 threadblock 0 instruction 1, and so on in "
       "a "
       "circle of 2 instructions"},
      {"a receive too few", Pair, [](Program& p) { BlockOf(p, 0).instructions.pop_back(); },
       "[P4] connection 1->0 channel 0: 2 sends and 1 receives"},
      {"a send of another chunk", Pair, [](Program& p) { At(p, 0, 0).src.slot = 0; },
       "[P4] connection 0->1 channel 0: send 0 is as large as chunk 0 (rank 0 threadblock 0 instruction 0), "
       "but "
       "receive 0 as chunk 1 (rank 1 threadblock 0 instruction 1)"},
      {"a send of more chunks", [] { return Lowered(CollectiveKind::kBroadcast, Algorithm::kDirect, 2, 2); },
       [](Program& p) { At(p, 1, 0).count = 1; },
       "[P4] connection 1->0 channel 0: send 0 moves 1 chunks (rank 1 threadblock 0 instruction 0), but "
       "receive 0 "
       "takes 2 (rank 0 threadblock 0 instruction 0)"},
      {"a ring that forwards with one slot",
       [] { return Lowered(CollectiveKind::kAllgather, Algorithm::kRing, 3, 1); },
       [](Program& p) { p.slots = 1; },
       "[P5] rank 0 threadblock 0 instruction 1: waits for rank 1 threadblock 0 instruction 1, and so on in "
       "a "
       "circle of 3 instructions with 1 slots"},
      {"two threadblocks that add to one slot",
       [] { return Lowered(CollectiveKind::kReduce, Algorithm::kDirect, 3, 1); }, DropDependencies,
       "[P6] rank 1 threadblock 1 instruction 0: reads output slot 0, which is written by threadblock 0 "
       "instruction 0; nothing orders the two"},
      {"a slot copied onto itself while it is written",
       [] { return Lowered(CollectiveKind::kAllgather, Algorithm::kDirect, 2, 1); },
       [](Program& p) {
         Instruction copy = BlockOf(p, 0, 2).instructions[0];
         copy.src = copy.dst = {BufferKind::kOutput, 1};
         BlockOf(p, 0, 2).instructions.push_back(copy);
       },
       "[P6] rank 0 threadblock 1 instruction 0: writes output slot 1, which is written by threadblock 2 "
       "instruction 1; nothing orders the two"},
      {"a sum overwritten before it is sent",
       [] { return Lowered(CollectiveKind::kAllreduce, Algorithm::kDirect, 3, 1, false); }, DropDependencies,
       "[P6] rank 0 threadblock 2 instruction 0: writes output slot 0, which is read by threadblock 0 "
       "instruction 0; nothing orders the two"},
      {"an order by messages in protocol LL", OrderedByMessages,
       [](Program& p) { p.protocol = Protocol::kLl; },
       "[P6] in place, rank 1 threadblock 1 instruction 0: writes output slot 0, which is read by "
       "threadblock 0 instruction 0; only messages order the two, which needs protocol simple, not ll; "
       "hint: protocol simple"},
      {"an order by messages in protocol LL128", OrderedByMessages,
       [](Program& p) { p.protocol = Protocol::kLl128; },
       "[P6] in place, rank 1 threadblock 1 instruction 0: writes output slot 0, which is read by "
       "threadblock 0 instruction 0; only messages order the two, which needs protocol simple, not ll128; "
       "hint: protocol simple"},
      {"copying slots one slot on",
       [] { return Lowered(CollectiveKind::kBroadcast, Algorithm::kDirect, 2, 2); },
       [](Program& p) {
         p.ranks[Rank(1)].scratch = {ChunkId(0), ChunkId(0), ChunkId(0)};
         std::vector<Instruction>& list = BlockOf(p, 1).instructions;
         Instruction once = list[0], on = list[0];
         once.op = on.op = Opcode::kCopy;
         once.count = 1;
         once.dst = on.src = {BufferKind::kScratch, 0};
         on.dst = {BufferKind::kScratch, 1};
         list.insert(list.begin(), {once, on});
       },
       "[P6] rank 1 threadblock 0 instruction 1: writes scratch slot 1, which it reads for another chunk; "
       "nothing orders the two"},
      {"reading what was never written", Pair,
       [](Program& p) {
         At(p, 0, 0).src.buffer = BufferKind::kOutput;
         At(p, 0, 0).first = false;
       },
       "[P7] rank 0 threadblock 0 instruction 0: reads output slot 1, which nothing has written"},
      {"adding twice", Pair,
       [](Program& p) {
         At(p, 0, 2).op = Opcode::kRecvReduceCopy;
         At(p, 0, 2).src = {BufferKind::kInput, 1};
         At(p, 0, 2).first = true;
       },
       "[P7] rank 0 threadblock 0 instruction 2: adds the contribution of rank 0 to chunk 1 twice"},
      {"adding unlike chunks", [] { return Lowered(CollectiveKind::kReduceScatter, Algorithm::kRing, 3, 1); },
       [](Program& p) { At(p, 0, 1).src.slot = 2; },
       "[P7] rank 0 threadblock 0 instruction 1: adds chunk 1 to chunk 2"},
      {"a sum that is not stored", Pair, [](Program& p) { At(p, 0, 1).op = Opcode::kRecvReduceSend; },
       "[P8] rank 0 output slot 0: is never written; expected chunk 0 with the contributions of 0, 1"},
      {"a part in the wrong place",
       [] { return Lowered(CollectiveKind::kAllgather, Algorithm::kDirect, 2, 1); },
       [](Program& p) { BlockOf(p, 0, 1).instructions[0].dst.slot = 0; },
       "[P6] rank 0 threadblock 1 instruction 0: writes output slot 0, which is written by threadblock 2 "
       "instruction 0; nothing orders the two"},
      {"a forwarded partial sum",
       [] { return Lowered(CollectiveKind::kReduceScatter, Algorithm::kRing, 3, 1); },
       [](Program& p) {
         At(p, 0, 2).op = Opcode::kRecv;
         At(p, 0, 2).src = Operand();
         At(p, 0, 2).first = At(p, 0, 2).final = false;
       },
       "[P8] rank 0 output slot 0: holds the contributions of 1, 2; expected chunk 0 with the contributions "
       "of 0..2"},
      {"input that avg would not scale", Pair, [](Program& p) { At(p, 0, 0).first = false; },
       "[P9] rank 0 threadblock 0 instruction 0: reads the rank's own input in input slot 1; expected first"},
      {"a sum that avg would not divide", Pair, [](Program& p) { At(p, 0, 1).final = false; },
       "[P9] rank 0 threadblock 0 instruction 1: completes the sum of chunk 0; expected final"},
      {"a sum that avg would divide twice", Pair, [](Program& p) { At(p, 0, 2).final = true; },
       "[P9] rank 0 threadblock 0 instruction 2: is final, but what it makes is not the complete sum"},
      {"scaling where nothing is read", Pair, [](Program& p) { At(p, 0, 2).first = true; },
       "[P9] rank 0 threadblock 0 instruction 2: is first, but recv reads nothing"},
      {"a nop that is final", Pair,
       [](Program& p) {
         p.ranks[Rank(0)].threadblocks.emplace_back().instructions.emplace_back().final = true;
       },
       "[P9] rank 0 threadblock 1 instruction 0: is final, but nop makes nothing"},
      {"scaling where nothing is added up",
       [] { return Lowered(CollectiveKind::kAllgather, Algorithm::kDirect, 2, 1); },
       [](Program& p) { At(p, 0, 0).first = true; },
       "[P9] rank 0 threadblock 0 instruction 0: is first, but allgather adds nothing up"},
  };
  return cases;
}

TEST(VerifyProgram, SaysExactlyWhatIsWrong) {
  for (const Rejection& c : Rejections()) {
    Subject subject = c.subject();
    ASSERT_TRUE(VerifyProgram(subject.program, subject.collective, subject.topology).empty()) << c.what;
    c.spoil(subject.program);
    const std::vector<Violation> violations =
        VerifyProgram(subject.program, subject.collective, subject.topology);
    EXPECT_EQ(violations.empty() ? "" : ToString(violations.front()), c.message) << c.what;
  }
}

TEST(VerifyProgram, EveryRuleHasARejection) {
  std::set<std::string> rules;
  for (const Rejection& c : Rejections()) rules.insert(std::string(c.message).substr(1, 2));
  EXPECT_EQ(rules, (std::set<std::string>(std::begin(kProgramRules), std::end(kProgramRules))));
}

// Sending one's input while writing the output needs an order in place, but not out of place.
TEST(VerifyProgram, SeesConflictsThatExistOnlyInPlace) {
  const Topology topology = FullMesh(2);
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 2);
  Schedule exchange;
  exchange.num_chunks = 1;
  for (int32_t r : {0, 1})
    exchange.Add(ChunkId(0), 1, Rank(r), Rank(1 - r), LinkBetween(topology, Rank(r), Rank(1 - r)),
                 TransferOp::kReduce, 0);
  Normalize(exchange);
  Program program = LowerChecked(exchange, collective, topology).value();
  EXPECT_TRUE(program.in_place);
  EXPECT_TRUE(VerifyProgram(program, collective, topology).empty());
  DropDependencies(program);
  const std::vector<Violation> violations = VerifyProgram(program, collective, topology);
  ASSERT_FALSE(violations.empty());
  EXPECT_EQ(violations[0].rule, "P6");
  EXPECT_EQ(violations[0].where.substr(0, 15), "in place, rank ");
  program.in_place = false;
  EXPECT_TRUE(VerifyProgram(program, collective, topology).empty());
}

// Deletes, swaps and retargets one instruction at a time. If the verifier accepts a change, the program
// must still compute the right result in every order that is tried.
class Mutations : public ::testing::TestWithParam<Algorithm> {};

TEST_P(Mutations, AreRejectedOrHarmless) {
  int64_t rejected = 0, harmless = 0;
  for (CollectiveKind kind : {CollectiveKind::kAllreduce, CollectiveKind::kAllgather,
                              CollectiveKind::kReduceScatter, CollectiveKind::kGather}) {
    const Subject good = Lowered(kind, GetParam(), 4, 1);
    const InterpretOptions options{.type = DataType::kInt32, .size_bytes = 256};
    const auto inputs = ExactInputs(good.program, good.collective, options);
    const auto expected = ExpectedOutputs(good.program, good.collective, inputs, options);
    const auto judge = [&](const Program& mutant, const std::string& what) {
      if (!VerifyProgram(mutant, good.collective, good.topology).empty()) {
        ++rejected;
        return;
      }
      ++harmless;
      for (uint64_t seed : {1, 2}) {
        InterpretOptions seeded = options;
        seeded.seed = seed;
        const auto outputs = Interpret(mutant, good.collective, inputs, seeded);
        ASSERT_TRUE(outputs.ok()) << what << ": " << outputs.status().message();
        ASSERT_EQ(*outputs, expected) << what;
      }
    };
    for (Rank r(0); r.value < 4; ++r.value) {
      for (size_t b = 0; b < good.program.ranks[r].threadblocks.size(); ++b) {
        const size_t count = good.program.ranks[r].threadblocks[b].instructions.size();
        for (size_t i = 0; i < count; ++i) {
          const std::string what = std::string(ToString(kind)) + " rank " + std::to_string(r.value) +
                                   " threadblock " + std::to_string(b) + " instruction " + std::to_string(i);
          const auto mutate = [&](const char* how, auto change) {
            Program mutant = good.program;
            std::vector<Instruction>& list = mutant.ranks[r].threadblocks[b].instructions;
            change(list);
            if (mutant == good.program) return;
            judge(mutant, what + " " + how);
          };
          mutate("deleted", [&](auto& list) { list.erase(list.begin() + static_cast<int64_t>(i)); });
          if (i + 1 < count) mutate("swapped", [&](auto& list) { std::swap(list[i], list[i + 1]); });
          mutate("source moved", [&](auto& list) {
            if (ReadsSource(list[i].op)) list[i].src.slot ^= 1;
          });
          mutate("destination moved", [&](auto& list) {
            if (WritesDestination(list[i].op)) list[i].dst.slot ^= 1;
          });
          mutate("dependencies dropped", [&](auto& list) { list[i].dep_count = 0; });
          mutate("not stored", [&](auto& list) {
            if (list[i].op == Opcode::kRecvReduceCopySend) list[i].op = Opcode::kRecvReduceSend;
          });
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(rejected, harmless);
}

INSTANTIATE_TEST_SUITE_P(All, Mutations,
                         ::testing::Values(Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree),
                         [](const auto& info) { return std::string(ToString(info.param)); });

}  // namespace
}  // namespace xccl
