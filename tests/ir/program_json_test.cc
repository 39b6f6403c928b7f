#include "ir/program_json.h"

#include <gtest/gtest.h>

#include <sstream>

#include "ir/lower/testing/checked.h"
#include "ir/testing/programs.h"

namespace xccl {
namespace {

std::string Written(const LoweredProgram& lowered, const Collective& schedule_cut) {
  std::ostringstream out;
  JsonWriter writer(out);
  WriteProgramJson(lowered, schedule_cut, writer);
  writer.Finish();
  return out.str();
}

StatusOr<LoweredProgram> ReadText(const std::string& text, const Collective& schedule_cut) {
  StatusOr<JsonDocument> document = JsonDocument::Parse(text, "p.json");
  if (!document.ok()) return document.status();
  return ReadProgramJson(document->root(), schedule_cut);
}

TEST(ProgramJson, EveryLoweredProgramReadsBackToTheSameValueAndText) {
  const Topology topology = OneSwitch(5);
  for (CollectiveKind kind : AllNamedCollectives()) {
    for (Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
      const Collective collective = MakeCollective(kind, 5).WithChunks(2);
      for (const bool folded : {false, true}) {
        const Schedule schedule = *HandSchedule(algorithm, collective, topology);
        const LoweredProgram lowered =
            folded
                ? LowerFoldedChecked(schedule, collective, topology, {.size_bytes = 65536}).value()
                : LoweredProgram{collective,
                                 LowerChecked(schedule, collective, topology, {.size_bytes = 65536}).value()};
        const std::string text = Written(lowered, collective);
        EXPECT_EQ(text.find("\"weights\"") == text.npos, lowered.collective == collective);
        const StatusOr<LoweredProgram> read = ReadText(text, collective);
        ASSERT_TRUE(read.ok()) << read.status().message();
        EXPECT_EQ(*read, lowered) << ToString(kind) << " " << ToString(algorithm);
        EXPECT_EQ(Written(*read, collective), text);
      }
    }
  }
}

// The example of docs/ir.md.
TEST(ProgramJson, IsWrittenAsDocumented) {
  const Topology topology = FullMesh(2);
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 2).WithChunks(2);
  const Program program = LowerChecked(*HandSchedule(Algorithm::kRing, collective, topology), collective,
                                       topology, {.size_bytes = 1024})
                              .value();
  EXPECT_EQ(Written({collective, program}, collective),
            R"({
 "protocol":"simple",
 "slots":2,
 "instances":1,
 "segment_bytes":0,
 "in_place":true,
 "connections":[[0,1,0,0],[1,0,0,1]],
 "ranks":[
  {"scratch":[],"threadblocks":[
    {"send":1,"recv":1,"channel":0,"op":"s rrcs r","count":[1,1,1],"src_buffer":"ii-","src":[1,0,0],"dst_buffer":"-oo","dst":[0,0,1],"flags":"fb.","deps":[]}
   ]},
  {"scratch":[],"threadblocks":[
    {"send":0,"recv":0,"channel":0,"op":"s rrcs r","count":[1,1,1],"src_buffer":"ii-","src":[0,1,0],"dst_buffer":"-oo","dst":[0,1,0],"flags":"fb.","deps":[]}
   ]}
 ]
}
)");
}

TEST(ProgramJson, GroupsReadBack) {
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 3);
  Program program;
  program.ranks = IdVector<Rank, RankProgram>(3);
  program.connections = {{Rank(0), Rank(1), 3, {}}, {Rank(0), Rank(2), 3, {LinkId(0), LinkId(3)}}};
  program.groups = {{Group::Kind::kMulticast, Rank(0), {Rank(1), Rank(2)}, 3, {LinkId(0), LinkId(3)}},
                    {Group::Kind::kReduce, Rank(2), {Rank(0), Rank(1)}, 1, {}}};
  program.ranks[Rank(0)].threadblocks.push_back({{}, {}, 0, {}, 3, {}});
  program.ranks[Rank(2)].threadblocks.push_back({Rank(0), {}, {}, 1, 1, {}});
  const std::string text = Written({collective, program}, collective);
  EXPECT_NE(text.find(R"(
 "groups":[
  {"kind":"multicast","root":0,"members":[1,2],"channel":3,"path":[0,3]},
  {"kind":"reduce","root":2,"members":[0,1],"channel":1,"path":[]}
 ],
)"),
            text.npos)
      << text;
  EXPECT_NE(text.find(R"({"send_group":0,"channel":3,)"), text.npos) << text;
  EXPECT_NE(text.find(R"({"send":0,"recv_group":1,"channel":1,)"), text.npos) << text;
  const StatusOr<LoweredProgram> read = ReadText(text, collective);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->program, program);
}

constexpr char kGood[] =
    R"({"protocol":"simple","slots":2,"instances":1,"segment_bytes":0,"in_place":false,"connections":[[0,1,0]],)"
    R"("ranks":[{"scratch":[],"threadblocks":[{"send":1,"channel":0,"op":"s cpy","count":[1,1],)"
    R"("src_buffer":"ii","src":[0,0],"dst_buffer":"-o","dst":[0,0],"flags":"..","deps":[1,0,0]}]}]})";

TEST(ProgramJson, RejectsWhatIsNotAProgram) {
  const Collective pair = MakeCollective(CollectiveKind::kAllgather, 2);
  ASSERT_TRUE(ReadText(kGood, pair).ok()) << ReadText(kGood, pair).status().message();
  struct Case {
    const char *from, *to, *message;
  };
  const Case cases[] = {
      {R"("slots":2)", R"("parts":[1],"weights":[1],"slots":2)",
       "p.json: parts: 1 entries; expected 2, the parts of the collective"},
      {R"("slots":2)", R"("parts":[1,2],"weights":[1,1],"slots":2)",
       "p.json: weights: 2 entries; expected 3, the chunks of parts"},
      {R"("simple")", R"("fast")", "p.json: protocol: no protocol 'fast'; expected simple, ll or ll128"},
      {R"("ranks":[{)",
       R"("groups":[{"kind":"all","root":0,"members":[1],"channel":0,"path":[]}],"ranks":[{)",
       "p.json: groups[0].kind: no kind 'all'; expected multicast, reduce or fan-in"},
      {R"("ranks":[{)", R"("groups":[{"kind":"reduce","root":0,"members":[1],"path":[]}],"ranks":[{)",
       "p.json: groups[0]: no key 'channel'; expected one"},
      {R"("slots":2)", R"("slots":0)", "p.json: slots: 0; expected 1..1024"},
      {R"("instances":1)", R"("instances":65)", "p.json: instances: 65; expected 1..64"},
      {R"([[0,1,0]])", R"([[0,1]])",
       "p.json: connections: entry 0: expected a list of source, destination, channel and the links"},
      {R"("s cpy")", R"("s copy")",
       "p.json: ranks[0].threadblocks[0].op: no instruction 'copy'; did you mean 'cpy'?"},
      {R"("s cpy")", R"("s cpy ")",
       "p.json: ranks[0].threadblocks[0].op: no instruction ''; expected one of s, r, rcs, rrs, rrc, rrcs, "
       "cpy, re, nop"},
      {R"("dst":[0,0])", R"("dst":[5,0])",
       "p.json: ranks[0].threadblocks[0].dst: instruction 0: 5 for send, which has no such operand; expected "
       "0"},
      {R"("count":[1,1])", R"("count":[1])",
       "p.json: ranks[0].threadblocks[0].count: 1 entries; expected 2, as many as op"},
      {R"("flags":"..")", R"("flags":".")",
       "p.json: ranks[0].threadblocks[0].flags: 1 characters; expected 2, as many as op"},
      {R"("flags":"..")", R"("flags":".x")",
       "p.json: ranks[0].threadblocks[0].flags: 'x'; expected only characters of '.flb'"},
      {R"("dst_buffer":"-o")", R"("dst_buffer":"oo")",
       "p.json: ranks[0].threadblocks[0].dst_buffer: instruction 0: 'o' for send; expected '-'"},
      {R"("src_buffer":"ii")", R"("src_buffer":"i-")",
       "p.json: ranks[0].threadblocks[0].src_buffer: instruction 1: '-' for copy; expected 'i', 'o' or 's'"},
      {R"([1,0,0])", R"([1,0])",
       "p.json: ranks[0].threadblocks[0].deps: 2 entries; expected a multiple of three"},
      {R"([1,0,0])", R"([2,0,0])",
       "p.json: ranks[0].threadblocks[0].deps: entry 0: instruction 2; expected the instructions in order, "
       "of "
       "0..1"},
  };
  for (const Case& c : cases) {
    std::string text = kGood;
    text.replace(text.find(c.from), std::string(c.from).size(), c.to);
    EXPECT_EQ(ReadText(text, pair).status().message(), c.message) << c.to;
  }
}

}  // namespace
}  // namespace xccl
