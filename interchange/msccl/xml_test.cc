#include "interchange/msccl/xml.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {
namespace {

// Rank 0 sends its chunks to rank 1, one a step, and both copy nothing else.
struct Case {
  Collective collective;
  Program program;
};

Collective Sent(CollectiveKind kind, int32_t ranks, int32_t chunks) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(ranks);
  if (IsRooted(kind)) spec.root = Rank(0);
  return Collective::Create(spec)->WithChunks(chunks);
}

Instruction Step(Opcode op, int32_t slot, int32_t count = 1) {
  Instruction i;
  i.op = op;
  i.count = op == Opcode::kNop ? 0 : count;
  if (ReadsSource(op)) i.src = {BufferKind::kInput, slot};
  if (WritesDestination(op)) i.dst = {BufferKind::kOutput, slot};
  return i;
}

// A broadcast from rank 0 to rank 1 in messages of `count` chunks. Rank 0 copies its own.
Case Broadcast(int32_t messages, int32_t count, int32_t channel = 0) {
  Case made{Sent(CollectiveKind::kBroadcast, 2, messages * count), {}};
  made.program.ranks = IdVector<Rank, RankProgram>(2);
  made.program.connections = {{Rank(0), Rank(1), channel, {}}};
  Threadblock send, receive, copy;
  send.send_peer = Rank(1);
  receive.recv_peer = Rank(0);
  send.channel = receive.channel = channel;
  for (int32_t m = 0; m < messages; ++m) {
    send.instructions.push_back(Step(Opcode::kSend, m * count, count));
    receive.instructions.push_back(Step(Opcode::kRecv, m * count, count));
  }
  copy.instructions = {Step(Opcode::kCopy, 0, messages * count)};
  made.program.ranks[Rank(0)].threadblocks = {send, copy};
  made.program.ranks[Rank(1)].threadblocks = {receive};
  return made;
}

StatusOr<MscclXml> Write(const Case& made, MscclXmlOptions options = {}) {
  return WriteMscclXml(made.program, made.collective, options);
}

std::string Refused(const Case& made, MscclXmlOptions options = {}) {
  return Write(made, options).status().message();
}

TEST(MscclXmlTest, WritesTheParsersDialect) {
  Case made = Broadcast(1, 1);
  // The copy waits for the send.
  made.program.dependencies = {{0, 0}};
  made.program.ranks[Rank(0)].threadblocks[1].instructions[0].dep_count = 1;
  const StatusOr<MscclXml> xml = Write(made);
  ASSERT_TRUE(xml.ok()) << xml.status().message();
  EXPECT_EQ(
      xml->text,
      R"(<algo name="xccl" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="broadcast" inplace="0" outofplace="1" minBytes="0" maxBytes="0">
  <gpu id="0" i_chunks="1" o_chunks="1" s_chunks="0">
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="0" deps="0" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="0" o_chunks="1" s_chunks="0">
    <tb id="0" send="-1" recv="0" chan="0">
      <step s="0" type="r" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
)");
  EXPECT_EQ(xml->selection,
            "executor selects it for broadcast on 2 ranks, out of place, from 0 bytes on, without an upper "
            "limit, where 1 divides the number of elements");
  EXPECT_EQ(xml->warnings, std::vector<std::string>{
                               "the file is right for root 0 alone, and executor does not look at the root"});
}

// For readers that know the machine. An attribute has 255 characters at most: longer paths are left out.
TEST(MscclXmlTest, ThreadblocksNameThePathOfWhatTheySend) {
  Case made = Broadcast(1, 1);
  made.program.connections[0].path = {LinkId(4), LinkId(17)};
  EXPECT_NE(Write(made)->text.find(R"(<tb id="0" send="1" recv="-1" chan="0" links="4,17">)"),
            std::string::npos);
  made.program.connections[0].path.assign(32, LinkId(1'234'567));  // with commas 255
  EXPECT_NE(Write(made)->text.find("links="), std::string::npos);
  made.program.connections[0].path.emplace_back(1);
  EXPECT_EQ(Write(made)->text.find("links="), std::string::npos);
}

// The copy waits for two sends through a nop of its own and through one that is waited for.
TEST(MscclXmlTest, SeveralWaitsTakeNopsBeforeTheLast) {
  Case made = Broadcast(1, 1);
  std::vector<Threadblock>& blocks = made.program.ranks[Rank(0)].threadblocks;
  Threadblock idle;
  idle.instructions = {Step(Opcode::kNop, 0)};
  Threadblock first = blocks[1];
  blocks = {blocks[0], first, idle, first};
  // Threadblock 2's nop waits for threadblocks 0 and 1; the last one for that nop.
  made.program.dependencies = {{0, 0}, {1, 0}, {2, 0}};
  blocks[2].instructions[0].dep_count = 2;
  blocks[3].instructions[0].dep_first = 2;
  blocks[3].instructions[0].dep_count = 1;
  const StatusOr<MscclXml> xml = Write(made);
  ASSERT_TRUE(xml.ok()) << xml.status().message();
  EXPECT_NE(xml->text.find(
                R"(    <tb id="2" send="-1" recv="-1" chan="0">
      <step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="0" deps="0" hasdep="0"/>
      <step s="1" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="1" deps="0" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1")"),
            std::string::npos)
      << xml->text;
}

TEST(MscclXmlTest, LongMessagesAreSplitAndWeightsAreEqualChunks) {
  const Case long_message = Broadcast(1, 100);
  const StatusOr<MscclXml> split = Write(long_message);
  ASSERT_TRUE(split.ok()) << split.status().message();
  EXPECT_NE(split->text.find(R"(srcoff="71" dstbuf="i" dstoff="71" cnt="29")"), std::string::npos);
  Case weighted = Broadcast(2, 1);
  weighted.collective = weighted.collective.WithWeights({{2, 1}});
  const StatusOr<MscclXml> thirds = Write(weighted);
  ASSERT_TRUE(thirds.ok()) << thirds.status().message();
  EXPECT_EQ(thirds->chunks_per_loop, 3);
  EXPECT_NE(thirds->text.find(R"(srcoff="2" dstbuf="i" dstoff="2" cnt="1")"), std::string::npos);
}

TEST(MscclXmlTest, CollectivesAreNamedAsTheTargetDoes) {
  Case made{Sent(CollectiveKind::kReduceScatter, 2, 1), {}};
  made.program.ranks = IdVector<Rank, RankProgram>(2);
  made.program.in_place = true;
  const auto text = [&](MscclTarget target, bool in_place) {
    return Write(made, {.target = target, .in_place = in_place})->text.substr(0, 150);
  };
  EXPECT_NE(text(MscclTarget::kMsccl, true).find(R"(coll="reduce_scatter" inplace="1" outofplace="0")"),
            std::string::npos);
  EXPECT_NE(text(MscclTarget::kMsccl, false).find(R"(coll="reduce_scatter" inplace="0" outofplace="1")"),
            std::string::npos);
  EXPECT_NE(text(MscclTarget::kRccl, false).find(R"(coll="reducescatter" inplace="1" outofplace="1")"),
            std::string::npos);
}

TEST(MscclXmlTest, NamesTheLimitsOfTheTarget) {
  EXPECT_EQ(
      Refused(Broadcast(70, 1)),
      "xccl: rank 0: 70 steps in threadblock 0; expected 64 at most for executor; hint: fewer --chunks, "
      "or build it with MSCCL_MAX_NUM_STEPS");
  EXPECT_EQ(Refused(Broadcast(300, 1), {.target = MscclTarget::kMsccl, .name = "b"}),
            "b: rank 0: 300 steps in threadblock 0; expected 256 at most for msccl; hint: fewer --chunks");
  EXPECT_EQ(Refused(Broadcast(1, 1, 40)), "xccl: 41 channels; expected 32 at most for executor");
  Case blocks = Broadcast(1, 1);
  Threadblock copy = blocks.program.ranks[Rank(0)].threadblocks[1];
  blocks.program.ranks[Rank(0)].threadblocks.resize(217, copy);
  EXPECT_EQ(Refused(blocks, {.target = MscclTarget::kMsccl}),
            "xccl: rank 0: 217 threadblocks; expected 216 at most for msccl; hint: plan --max-ctas 216");
  copy.instructions.resize(40, copy.instructions[0]);
  for (Threadblock& tb : blocks.program.ranks[Rank(0)].threadblocks) tb = copy;
  blocks.program.ranks[Rank(1)].threadblocks.clear();
  EXPECT_EQ(Refused(blocks),
            "xccl: rank 0: 8900 XML elements; expected 4096 at most for executor; hint: fewer --chunks");
}

TEST(MscclXmlTest, LimitsAndOneMore) {
  const auto with_blocks = [](int32_t blocks) {
    Case made = Broadcast(1, 1);
    std::vector<Threadblock>& all = made.program.ranks[Rank(0)].threadblocks;
    all.resize(static_cast<size_t>(blocks), Threadblock(all[1]));
    return made;
  };
  const auto with_steps = [](int32_t steps) {  // 60 threadblocks with so many steps, and one more
    Case made = Broadcast(1, 1);
    std::vector<Threadblock>& all = made.program.ranks[Rank(0)].threadblocks;
    const Instruction copy = all[1].instructions[0];
    all.assign(1, {});
    for (; steps > 0; --steps) {
      if (all.back().instructions.size() == 60) all.emplace_back();
      all.back().instructions.push_back(copy);
    }
    made.program.ranks[Rank(1)].threadblocks.clear();
    made.program.connections.clear();
    return made;
  };
  const auto with_ranks = [](int32_t ranks) {
    Case made{Sent(CollectiveKind::kBroadcast, ranks, 1), {}};
    made.program.ranks = IdVector<Rank, RankProgram>(static_cast<size_t>(ranks));
    return made;
  };
  const struct {
    const char* what;
    Case at, over;
    MscclTarget target;
    const char* refused;
  } cases[] = {
      {"steps", Broadcast(64, 1), Broadcast(65, 1), MscclTarget::kRccl,
       "xccl: rank 0: 65 steps in threadblock 0; expected 64 at most for rccl; hint: fewer --chunks"},
      {"steps", Broadcast(256, 1), Broadcast(257, 1), MscclTarget::kMsccl,
       "xccl: rank 0: 257 steps in threadblock 0; expected 256 at most for msccl; hint: fewer --chunks"},
      {"channels", Broadcast(1, 1, 31), Broadcast(1, 1, 32), MscclTarget::kExecutor,
       "xccl: 33 channels; expected 32 at most for executor"},
      {"threadblocks", with_blocks(216), with_blocks(217), MscclTarget::kMsccl,
       "xccl: rank 0: 217 threadblocks; expected 216 at most for msccl; hint: plan --max-ctas 216"},
      {"threadblocks", with_blocks(1024), with_blocks(1025), MscclTarget::kExecutor,
       "xccl: rank 0: 1025 threadblocks; expected 1024 at most for executor; hint: plan --max-ctas 1024"},
      // 1 + 2 ranks + 68 threadblocks + 4025 steps
      {"elements", with_steps(4025), with_steps(4026), MscclTarget::kExecutor,
       "xccl: rank 0: 4097 XML elements; expected 4096 at most for executor; hint: fewer --chunks"},
      {"threadblocks of RCCL", with_blocks(64), with_blocks(65), MscclTarget::kRccl,
       "xccl: rank 0: 65 threadblocks; expected 64 at most for rccl; hint: plan --max-ctas 64"},
      {"ranks", with_ranks(1024), with_ranks(1025), MscclTarget::kExecutor,
       "xccl: 1025 ranks; expected 1024 at most for executor"},
  };
  for (const auto& c : cases) {
    const MscclXmlOptions options{.target = c.target};
    const StatusOr<MscclXml> fits = Write(c.at, options);
    EXPECT_TRUE(fits.ok()) << c.what << ": " << fits.status().message();
    EXPECT_EQ(Refused(c.over, options), c.refused) << c.what;
  }
}

// A rank that joins 33 connections through threadblocks that send and receive.
TEST(MscclXmlTest, PeersOfAChannelAreSpread) {
  const auto with_peers = [](int32_t peers, bool joined) {
    Case made{Sent(CollectiveKind::kAlltoall, peers + 1, 1), {}};
    made.program.ranks = IdVector<Rank, RankProgram>(static_cast<size_t>(peers + 1));
    std::vector<Threadblock>& root = made.program.ranks[Rank(0)].threadblocks;
    for (int32_t p = 1; p <= peers; ++p) {
      made.program.connections.push_back({Rank(0), Rank(p), 0, {}});
      Threadblock send, receive;
      send.send_peer = Rank(p);
      receive.recv_peer = Rank(0);
      send.instructions = {Step(Opcode::kSend, p)};
      receive.instructions = {Step(Opcode::kRecv, 0)};
      if (joined) {
        send.recv_peer = Rank(p % peers + 1);
        receive.send_peer = Rank(0);
        receive.instructions.push_back(Step(Opcode::kSend, 0));
        send.instructions.push_back(Step(Opcode::kRecv, p % peers + 1));
      }
      root.push_back(send);
      made.program.ranks[Rank(p)].threadblocks = {receive};
    }
    for (int32_t p = 1; p <= peers && joined; ++p)
      made.program.connections.push_back({Rank(p), Rank(0), 0, {}});
    return made;
  };
  for (const bool joined : {false, true}) {
    const StatusOr<MscclXml> fits = Write(with_peers(32, joined));
    ASSERT_TRUE(fits.ok()) << fits.status().message();
    EXPECT_EQ(fits->text.find("chan=\"1\""), std::string::npos);
  }
  const StatusOr<MscclXml> spread = Write(with_peers(33, false));
  ASSERT_TRUE(spread.ok()) << spread.status().message();
  EXPECT_NE(spread->text.find("nchannels=\"2\""), std::string::npos);
  EXPECT_EQ(Refused(with_peers(33, true)),
            "xccl: rank 0: over 32 threadblocks send on channel 0; expected 32 at most for executor");
}

TEST(MscclXmlTest, InstancesAreWrittenAsFarAsTheyFit) {
  Case made = Broadcast(2, 1);
  made.program.instances = 4;
  const StatusOr<MscclXml> all = Write(made, {.target = MscclTarget::kMsccl});
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->chunks_per_loop, 8);
  EXPECT_EQ(all->warnings.size(), 1U);  // a warning about the root
  EXPECT_NE(all->text.find(R"(<tb id="6" send="1" recv="-1" chan="3">)"), std::string::npos) << all->text;
  std::vector<Threadblock>& blocks = made.program.ranks[Rank(0)].threadblocks;
  blocks.resize(100, Threadblock(blocks[1]));
  const StatusOr<MscclXml> half = Write(made, {.target = MscclTarget::kMsccl});
  ASSERT_TRUE(half.ok()) << half.status().message();
  EXPECT_EQ(
      half->warnings.back(),
      "2 of 4 instances of every threadblock are left out: xccl: rank 0: 400 threadblocks; expected 216 at "
      "most for msccl; hint: plan --max-ctas 216");
}

TEST(MscclXmlTest, OddWeightsAreRounded) {
  Case made = Broadcast(2, 1);
  made.collective = made.collective.WithWeights({{10'007, 29'993}});
  const StatusOr<MscclXml> xml = Write(made);
  ASSERT_TRUE(xml.ok()) << xml.status().message();
  EXPECT_EQ(xml->chunks_per_loop, 4);
  EXPECT_EQ(xml->warnings.back(), "chunks are rounded to whole parts of 4, by up to 0.07 %");
  // As many chunks as an offset can count are exact, and too many steps.
  made.collective = made.collective.WithWeights({{1, 32'766}});
  EXPECT_EQ(Write(made, {.target = MscclTarget::kMsccl}).status().message(),
            "xccl: rank 0: 463 steps in threadblock 0; expected 256 at most for msccl; hint: fewer --chunks");
}

// Every other threadblock waits for one of its own.
TEST(MscclXmlTest, WaitedForThreadblocksComeFirst) {
  Case made = Broadcast(1, 1);
  const Threadblock copy = made.program.ranks[Rank(0)].threadblocks[1];
  const auto with = [&](int32_t waits) {
    std::vector<Threadblock> blocks(static_cast<size_t>(2 * waits), copy);
    made.program.dependencies.clear();
    for (int32_t w = 0; w < waits; ++w) {
      made.program.dependencies.push_back({waits + w, 0});
      blocks[static_cast<size_t>(w)].instructions[0].dep_first = w;
      blocks[static_cast<size_t>(w)].instructions[0].dep_count = 1;
    }
    made.program.ranks[Rank(0)].threadblocks = blocks;
    made.program.ranks[Rank(1)].threadblocks.clear();
    return Write(made);
  };
  const StatusOr<MscclXml> fits = with(100);
  ASSERT_TRUE(fits.ok()) << fits.status().message();
  EXPECT_NE(fits->text.find(R"(depid="99")"), std::string::npos);
  EXPECT_EQ(fits->text.find(R"(depid="100")"), std::string::npos);
  EXPECT_EQ(with(129).status().message(),
            "xccl: rank 0: 129 threadblocks that others wait for; expected 128 at most for executor");
}

TEST(MscclXmlTest, NamesWhatTheFormatCannotSay) {
  Case made = Broadcast(2, 1);
  EXPECT_EQ(Refused(made, {.name = "a\"b"}),
            "name 'a\"b' of 3 characters; expected 1 to 255 of ASCII without \", < and &");
  EXPECT_EQ(Refused(made, {.min_bytes = 8, .max_bytes = 4}),
            "xccl: sizes from 8 to 4 bytes; expected the second to be as large as the first");
  EXPECT_EQ(Refused(made, {.target = MscclTarget::kMsccl, .in_place = true}),
            "xccl: in place; the program is only right out of place");
  Case weights = made;
  weights.collective = made.collective.WithWeights({{1, 40000}});
  EXPECT_EQ(Refused(weights),
            "xccl: part 0 needs a multiple of 40001 equal chunks, and earlier parts of 1; expected 32767 at "
            "most: an offset of MSCCL has 16 bits; hint: fewer --chunks");
  Case gather = made;
  gather.collective = Sent(CollectiveKind::kGather, 2, 1);
  EXPECT_EQ(Refused(gather),
            "xccl: gather; expected allreduce, allgather, reduce_scatter, alltoall, broadcast or reduce: "
            "executor selects no others");
  Case relay = made;
  relay.program.ranks = IdVector<Rank, RankProgram>(3);
  EXPECT_EQ(Refused(relay),
            "xccl: broadcast of 2 of the machine's 3 ranks, or in another order; expected all in order: "
            "MSCCL XML has no others; hint: plan on the members alone");
  Case group = made;
  group.program.groups.push_back({.kind = Group::Kind::kReduce, .root = Rank(1), .members = {}, .path = {}});
  EXPECT_EQ(
      Refused(group),
      "xccl: reduce group of rank 1, which a switch serves; expected connections between two ranks: executor "
      "cannot use switches so; hint: plan --plain-switches");
}

// Both ranks send four chunks before they receive any: eight slots are enough, two are not.
TEST(MscclXmlTest, ProgramsMustDoWithTheSlotsOfTheExecutor) {
  Case made{Sent(CollectiveKind::kAlltoall, 2, 4), {}};
  Program& program = made.program;
  program.ranks = IdVector<Rank, RankProgram>(2);
  program.connections = {{Rank(0), Rank(1), 0, {}}, {Rank(1), Rank(0), 0, {}}};
  program.slots = 4;
  for (int32_t r = 0; r < 2; ++r) {
    Threadblock block;
    block.send_peer = block.recv_peer = Rank(1 - r);
    block.instructions = {Step(Opcode::kSend, (1 - r) * 4, 4), Step(Opcode::kRecv, (1 - r) * 4, 4)};
    program.ranks[Rank(r)].threadblocks = {block};
  }
  EXPECT_EQ(Refused(made),
            "xccl: waits in a circle with 2 chunks under way on a connection, which is what executor has in "
            "protocol Simple; expected a program that needs no more, not 4 slots; hint: --max-size=8MiB, to "
            "which 2 chunks go at a time");
  EXPECT_TRUE(Write(made, {.max_bytes = 8 << 20}).ok());
  EXPECT_FALSE(Write(made, {.max_bytes = (8 << 20) + 1}).ok());
  program.protocol = Protocol::kLl;
  EXPECT_TRUE(Write(made).ok());
}

TEST(MscclXmlTest, SaysWhenATargetNeverSelectsIt) {
  EXPECT_EQ(
      Write(Broadcast(1, 1), {.target = MscclTarget::kMsccl, .min_bytes = 8, .max_bytes = 8})->warnings[0],
      "msccl never selects it: no size is from 8 to less than 8 bytes");
  EXPECT_EQ(ParseMscclTarget("excutor").status().message(),
            "no MSCCL target 'excutor'; did you mean 'executor'?");
}

}  // namespace
}  // namespace xccl
