#include "interchange/mscclpp/json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {
namespace {

struct Case {
  Collective collective;
  Program program;
};

Collective Cut(CollectiveKind kind, int32_t ranks, int32_t chunks) {
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

// A broadcast from rank 0 to rank 1, one chunk a message. Rank 0 copies its own.
Case Broadcast(int32_t messages) {
  Case made{Cut(CollectiveKind::kBroadcast, 2, messages), {}};
  made.program.ranks = IdVector<Rank, RankProgram>(2);
  made.program.connections = {{Rank(0), Rank(1), 0, {}}};
  Threadblock send, receive, copy;
  send.send_peer = Rank(1);
  receive.recv_peer = Rank(0);
  for (int32_t m = 0; m < messages; ++m) {
    send.instructions.push_back(Step(Opcode::kSend, m));
    receive.instructions.push_back(Step(Opcode::kRecv, m));
  }
  copy.instructions = {Step(Opcode::kCopy, 0, messages)};
  made.program.ranks[Rank(0)].threadblocks = {send, copy};
  made.program.ranks[Rank(1)].threadblocks = {receive};
  return made;
}

StatusOr<MscclppJson> Write(const Case& made, const MscclppOptions& options = {}) {
  return WriteMscclppJson(made.program, made.collective, options);
}
std::string Refused(const Case& made, const MscclppOptions& options = {}) {
  return Write(made, options).status().message();
}

TEST(MscclppJsonTest, WritesWhatTheExecutorLoads) {
  Case made = Broadcast(1);
  // The copy waits for the send.
  made.program.dependencies = {{0, 0}};
  made.program.ranks[Rank(0)].threadblocks[1].instructions[0].dep_count = 1;
  const StatusOr<MscclppJson> json = Write(made);
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ(json->text, R"({
 "name":"xccl-bcd480ac0f7a2b29",
 "collective":"broadcast",
 "protocol":"Simple",
 "inplace":false,
 "reuse_resources":false,
 "gpus":[
  {"id":0,"input_chunks":1,"output_chunks":1,"scratch_chunks":0,"threadblocks":[
    {"id":0,"ops":[
      {"name":"wait","channel_ids":[0],"channel_type":"memory"},
      {"name":"nop"},
      {"name":"put","src_buff":[{"type":"i","index":0,"size":1}],"dst_buff":[{"buffer_id":0,"index":0,"size":1}],"channel_ids":[0],"channel_type":"memory"},
      {"name":"nop"},
      {"name":"signal","channel_ids":[0],"channel_type":"memory"},
      {"name":"sem_release","semaphore_ids":[0]}
     ],"channels":[{"channel_type":"memory","channel_ids":[0]}],"remote_buffer_refs":[{"access_channel_type":"memory","remote_buffer_ids":[0]}]},
    {"id":1,"ops":[
      {"name":"sem_acquire","semaphore_ids":[0]},
      {"name":"nop"},
      {"name":"copy","src_buff":[{"type":"i","index":0,"size":1}],"dst_buff":[{"type":"o","index":0,"size":1}]}
     ],"channels":[],"remote_buffer_refs":[]}
   ],"channels":[
    {"channel_type":"memory","connected_to":[1]}
   ],"remote_buffers":[
    {"rank":1,"type":"o","access_channel_types":["memory"]}
   ],"semaphores":[{"init_value":0}]},
  {"id":1,"input_chunks":1,"output_chunks":1,"scratch_chunks":0,"threadblocks":[
    {"id":0,"ops":[
      {"name":"signal","channel_ids":[0],"channel_type":"memory"},
      {"name":"wait","channel_ids":[0],"channel_type":"memory"}
     ],"channels":[{"channel_type":"memory","channel_ids":[0]}],"remote_buffer_refs":[]}
   ],"channels":[
    {"channel_type":"memory","connected_to":[0]}
   ],"remote_buffers":[],"semaphores":[]}
 ],
 "num_threads_per_block":1024,
 "use_double_scratch_buffer":false,
 "buffer_alignment":16,
 "min_message_size":16,
 "max_message_size":4294967280,
 "slots":2
}
)");
  EXPECT_EQ(
      json->selection,
      "MSCCL++ selects it for broadcast on 2 ranks, out of place, from 16 to 4294967280 bytes of input; "
      "all such sizes must be multiples of 16 bytes");
  EXPECT_EQ(json->warnings,
            (std::vector<std::string>{
                "the plan is right for root 0 alone, and MSCCL++ does not look at the root"}));
}

// MSCCL++ caches the set-up of a plan by the buffers and the plan's name.
TEST(MscclppJsonTest, PlansThatDifferHaveOtherNames) {
  const auto name = [](const StatusOr<MscclppJson>& json) {
    return json->text.substr(0, json->text.find(','));
  };
  const std::string one = name(Write(Broadcast(1)));
  EXPECT_EQ(one, name(Write(Broadcast(1))));
  EXPECT_NE(one, name(Write(Broadcast(2))));
  EXPECT_NE(one, name(Write(Broadcast(1), {.max_bytes = 1024})));
}

// Senders find the second half of a peer's scratch by the size of their own.
TEST(MscclppJsonTest, PacketsHaveAsMuchScratchAtAllRanks) {
  Case made = Broadcast(1);
  made.program.protocol = Protocol::kLl;
  const StatusOr<MscclppJson> json = Write(made);
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ(json->text.find("\"scratch_chunks\":0"), std::string::npos) << json->text;
}

TEST(MscclppJsonTest, WeightsAreRoundedWhereExactChunksAreTooMany) {
  Case made = Broadcast(2);
  made.collective = made.collective.WithWeights({{1, 65'535}});
  const StatusOr<MscclppJson> exact = Write(made);
  ASSERT_TRUE(exact.ok()) << exact.status().message();
  EXPECT_EQ(exact->chunks, 65'536);
  made.collective = made.collective.WithWeights({{25'007, 74'993}});
  const StatusOr<MscclppJson> rounded = Write(made);
  ASSERT_TRUE(rounded.ok()) << rounded.status().message();
  EXPECT_EQ(rounded->chunks, 4);
  EXPECT_EQ(rounded->warnings.back(), "chunks are rounded to whole parts of 4, by up to 0.03 %");
}

TEST(MscclppJsonTest, RefusesWhatAPlanCannotSay) {
  Case made = Broadcast(1);
  EXPECT_EQ(Refused(made, {.in_place = true}), "xccl: in place; the program is only right out of place");
  EXPECT_EQ(Refused(made, {.min_bytes = 5, .max_bytes = 4}),
            "xccl: sizes from 5 to 4 bytes; expected the second to be as large as the first");
  EXPECT_EQ(Refused(made, {.max_bytes = 15}),
            "xccl: sizes to 15 bytes; expected 16 or more: 1 chunks of 16 bytes");
  EXPECT_EQ(
      Refused(made, {.max_bytes = 4294967281}),
      "xccl: sizes to 4294967281 bytes; expected 4294967280 at most: offsets of MSCCL++ have 32 bits, and "
      "the largest buffer has 1 chunks of 1; hint: --max-size 4294967280");
  EXPECT_EQ(
      Refused(made, {.min_bytes = int64_t{1} << 31}),
      "xccl: sizes from 2147483648 bytes; expected 2147483647 at most: MSCCL++ reads min_message_size as "
      "32 bits");
  EXPECT_TRUE(Write(made, {.min_bytes = (int64_t{1} << 31) - 1}).ok());
  EXPECT_TRUE(Write(made, {.max_bytes = 4294967280}).ok());
  EXPECT_TRUE(Write(made, {.max_bytes = 16}).ok());
  made.program.ranks.push_back({});
  EXPECT_EQ(
      Refused(made),
      "xccl: broadcast of 2 of the machine's 3 ranks, or in another order; expected all in order: a plan "
      "of MSCCL++ is for all ranks of a communicator; hint: plan on the members alone");
  made.program.ranks.resize(1);
  EXPECT_EQ(Refused(made), "xccl: broadcast of 1 rank; expected 2 at least, as MSCCL++ does");
  Case pairs = Broadcast(1);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kSendrecv;
  spec.ranks = AllRanks(2);
  spec.pairs = {{Rank(0), Rank(1)}};
  pairs.collective = *Collective::Create(spec);
  EXPECT_EQ(
      Refused(pairs),
      "xccl: sendrecv; expected allreduce, allgather, reduce_scatter, broadcast, reduce, gather, scatter "
      "or alltoall: a plan of MSCCL++ cuts all buffers into chunks of one size");
}

}  // namespace
}  // namespace xccl
