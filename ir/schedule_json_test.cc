#include "ir/schedule_json.h"

#include <gtest/gtest.h>

#include <functional>
#include <sstream>

namespace xccl {
namespace {

// GPUs 0..2 around a switch: links 2r to it and 2r+1 from it.
Topology Star() {
  TopologySpec spec;
  spec.name = "star";
  for (int r = 0; r < 3; ++r) {
    Node gpu;
    gpu.id = std::to_string(r);
    spec.nodes.push_back(gpu);
    spec.links.push_back(Link{NodeId(r), NodeId(3), 1000});
    spec.links.push_back(Link{NodeId(3), NodeId(r), 1000});
  }
  spec.nodes.push_back(Node{NodeKind::kSwitch, "s", std::nullopt, true, true});
  return Topology::Create(spec).value();
}

std::string Written(const std::function<void(JsonWriter&)>& write) {
  std::ostringstream out;
  JsonWriter writer(out);
  write(writer);
  writer.Finish();
  return out.str();
}

constexpr std::string_view kExample = R"({
 "chunks":2,
 "first":[0,1,0,1],
 "count":[1,1,1,1],
 "src":[0,0,[1,2],0],
 "dst":[1,[1,2],0,1],
 "path":[[0,3],[0,3,5],[2,4,1],[0,3]],
 "op":"ccrc",
 "step":[0,0,1,2]
}
)";

TEST(ScheduleJson, ReadsWhatItWrites) {
  const Topology star = Star();
  const JsonDocument document = JsonDocument::Parse(kExample, "f").value();
  const Schedule schedule = ReadScheduleJson(document.root(), star).value();
  EXPECT_EQ(schedule.num_chunks, 2);
  EXPECT_EQ(schedule.paths.size(), 3);
  EXPECT_EQ(schedule.path[0], schedule.path[3]);
  EXPECT_EQ(schedule.at(2), (Transfer{ChunkId(0), 1, Rank(1), Rank(0), PathId(2), TransferOp::kReduce, 1}));
  EXPECT_EQ(Written([&](JsonWriter& w) { WriteScheduleJson(schedule, star, w); }), kExample);
}

// A plan of 131,040 ranks whose switches sum and copy took 308 MB, mostly for the links of 1,820 trees that
// each of 64 waves repeated.
TEST(ScheduleJson, ListsPathsOfManyTreesOnce) {
  const Topology star = Star();
  Schedule schedule;
  const std::vector<LinkId> up = {LinkId(2), LinkId(4), LinkId(1)}, down = {LinkId(0), LinkId(3), LinkId(5)};
  const int32_t chunks = (1 << 20) / 6 + 1;  // more than 2^20 links
  schedule.num_chunks = chunks;
  for (int32_t c = 0; c < chunks; ++c) {
    schedule.Add(ChunkId(c), 1, Rank(1), Rank(0), up, TransferOp::kReduce, 2 * c);
    schedule.Add(ChunkId(c), 1, Rank(0), Rank(1), down, TransferOp::kCopy, 2 * c + 1);
  }
  std::string text = Written([&](JsonWriter& w) { WriteScheduleJson(schedule, star, w); });
  EXPECT_LT(text.size(), static_cast<size_t>(chunks) * 60);
  EXPECT_NE(text.find(R"("paths":[[2,4,1],[0,3,5]])"), std::string::npos);
  {
    const JsonDocument document = JsonDocument::Parse(text, "f").value();
    EXPECT_EQ(ReadScheduleJson(document.root(), star).value(), schedule);
  }
  const auto error_where = [&](std::string_view what, std::string_view by) {
    std::string changed = text;
    changed.replace(changed.find(what), what.size(), by);
    const JsonDocument document = JsonDocument::Parse(changed, "f").value();
    return ReadScheduleJson(document.root(), star).status().message();
  };
  EXPECT_EQ(error_where(R"("src":[1,)", R"("src":[2,)"),
            "f: src: entry 0: expected 1, the first rank at which its path starts");
  EXPECT_EQ(error_where(R"("dst":[0,1,)", R"("dst":[0,[1,2],)"),
            "f: dst: entry 1: expected 1, the first rank at which its path ends");
  EXPECT_EQ(error_where(R"("path":[0,)", R"("path":[2,)"), "f: path: entry 0 is 2; expected 0..1");
}

TEST(ScheduleJson, KeepsDamage) {
  const Topology star = Star();
  const std::string text = R"({
 "chunks":1,
 "first":[0],
 "count":[1],
 "src":[0],
 "dst":[1],
 "path":[[6,3]],
 "op":"c",
 "step":[0],
 "symmetry":{"order":[3],"image":[[1,2,0,3]]},
 "damage":{"lost":[[0,3,1000,5,0]],"slow":[[2,5000000000]],"links":[[6]],"by":[[0]]}
}
)";
  const JsonDocument document = JsonDocument::Parse(text, "f").value();
  const Schedule schedule = ReadScheduleJson(document.root(), star).value();
  EXPECT_EQ(schedule.missing, (MissingLinks{.hosts = {},
                                            .lost = {Link{NodeId(0), NodeId(3), 1000, 5, 0}},
                                            .slow = {{LinkId(2), 5'000'000'000}}}));
  EXPECT_EQ(schedule.detours, (std::vector<Detour>{{.links = {LinkId(6)}, .by = {LinkId(0)}}}));
  EXPECT_EQ(Written([&](JsonWriter& w) { WriteScheduleJson(schedule, star, w); }), text);
}

TEST(ScheduleJson, LostHosts) {
  const Topology star = Star();
  const std::string text = R"({
 "chunks":4,
 "first":[0],
 "count":[1],
 "src":[0],
 "dst":[1],
 "path":[[0,3]],
 "op":"c",
 "step":[0],
 "symmetry":{"order":[4],"image":[[1,2,3,0]]},
 "damage":{"lost":[],"slow":[],"links":[],"by":[],"hosts":[2,0],"ways":[[0,3],[2,5]]}
}
)";
  const JsonDocument document = JsonDocument::Parse(text, "f").value();
  const Schedule schedule = ReadScheduleJson(document.root(), star).value();
  EXPECT_EQ(schedule.missing.hosts, (std::vector<HostId>{HostId(2), HostId(0)}));
  EXPECT_EQ(schedule.ways,
            (std::vector<std::vector<LinkId>>{{LinkId(0), LinkId(3)}, {LinkId(2), LinkId(5)}}));
  EXPECT_EQ(Written([&](JsonWriter& w) { WriteScheduleJson(schedule, star, w); }), text);
}

TEST(ScheduleJson, Errors) {
  const struct {
    std::string find, replace, expected;
  } cases[] = {
      {"\"first\":[0,1,0,1]", "\"first\":[0,1,0]", "f: first: 3 entries; expected 4, as schedule.count has"},
      {"\"op\":\"ccrc\"", "\"op\":\"ccr\"", "f: first: 4 entries; expected 3, as schedule.op has"},
      {"ccrc", "ccxc", "f: op: character 2 is 'x'; expected c (copy) or r (reduce)"},
      {"\"step\":[0,", "\"step\":[-1,", "f: step: entry 0 is -1; expected 0..2147483647"},
      {"\"count\":[1,", "\"count\":[4294967297,", "f: count: entry 0 is 4294967297; expected 0..2147483647"},
      {"\"src\":[0,", "\"src\":[[],", "f: src: entry 0 has no ranks"},
      {"[0,0,[1,2],0]", "[0,0,[0,2],0]", "f: src: entry 2 is [0,2]; its path starts at [1,2]"},
      {"[1,[1,2],0,1]", "[1,[2,1],0,1]", "f: dst: entry 1 is [2,1]; its path ends at [1,2]"},
      {"[1,[1,2],0,1]", "[1,1,0,1]", "f: dst: entry 1 is 1; its path ends at [1,2]"},
      {"[1,[1,2],0,1]", "[1,[1],0,1]", "f: dst: entry 1 is [1]; its path ends at [1,2]"},
      {"[0,0,[1,2],0]", "[0,0,1,0]", "f: src: entry 2 is 1; its path starts at [1,2]"},
      {"[1,[1,2],0,1]", "[[1],[1,2],0,1]",
       "f: dst: entry 0 is a list; expected a rank, since its path ends at one"},
      {"[0,0,[1,2],0]", "[0,[0,1],[1,2],0]",
       "f: src: entry 1 is a list; expected a rank, since its path starts at one"},
      {"[[0,3],[0,3,5]", "[3,[0,3,5]", "f: path: entry 0 is a number; expected a list of links"},
      {"\"chunks\":2,", "\"chunks\":2,\"symmetry\":{\"order\":[],\"image\":[]},",
       "f: symmetry: no generators; expected one or more"},
      {"\"chunks\":2,", "\"chunks\":2,\"symmetry\":{\"order\":[2],\"image\":[[0],[1]]},",
       "f: symmetry.image: 2 entries; expected 1, as symmetry.order has"},
      {"\"chunks\":2,", "\"chunks\":2,\"symmetry\":{\"orders\":[2]},",
       "f: symmetry: unknown key 'orders'; did you mean 'order'?"},
      {"\"chunks\":2,", "\"chunks\":2,\"damage\":{\"lost\":[[1,2]],\"slow\":[],\"links\":[],\"by\":[]},",
       "f: damage.lost: entry 0: expected a list of 5 numbers"},
      {"\"chunks\":2,",
       "\"chunks\":2,\"damage\":{\"lost\":[],\"slow\":[[4294967296,1]],\"links\":[],\"by\":[]},",
       "f: damage.slow: entry 0 has 4294967296; expected 0..2147483647"},
      {"\"chunks\":2,", "\"chunks\":2,\"damage\":{\"lost\":[],\"slow\":[],\"links\":[[1]],\"by\":[]},",
       "f: damage.by: 0 entries; expected 1, as damage.links has"},
      {"\"chunks\":2,", "\"chunks\":2,\"damage\":{\"lost\":[]},", "f: damage: no key 'slow'; expected one"},
      {"\"chunks\":2,",
       "\"chunks\":2,\"damage\":{\"lost\":[],\"slow\":[],\"links\":[],\"by\":[],\"hosts\":[-1]},",
       "f: damage.hosts: entry 0 is -1; expected 0..2147483647"},
      {"\"chunks\":2,",
       "\"chunks\":2,\"damage\":{\"lost\":[],\"slow\":[],\"links\":[],\"by\":[],\"ways\":[1]},",
       "f: damage.ways: entry 0 is a number; expected a list of links"},
      {"\"chunks\":2,", "", "f: no key 'chunks'; expected one"},
      {"\"chunks\"", "\"chunk\"", "f: unknown key 'chunk'; did you mean 'chunks'?"},
      {"\"chunks\":2", "\"chunks\":1e9", "f: chunks: 1000000000; expected a whole number"},
  };
  for (const auto& c : cases) {
    std::string text(kExample);
    const size_t at = text.find(c.find);
    ASSERT_NE(at, text.npos) << c.find;
    text.replace(at, c.find.size(), c.replace);
    const JsonDocument document = JsonDocument::Parse(text, "f").value();
    const StatusOr<Schedule> schedule = ReadScheduleJson(document.root(), Star());
    ASSERT_FALSE(schedule.ok()) << c.find;
    EXPECT_EQ(schedule.status().message(), c.expected);
  }
}

// Links that do not exist are read without an error; the verifier reports them.
TEST(ScheduleJson, LeavesMeaningToTheVerifier) {
  std::string text(kExample);
  text.replace(text.find("[0,3,5]"), 7, "[0,3,9]");
  const JsonDocument document = JsonDocument::Parse(text, "f").value();
  EXPECT_TRUE(ReadScheduleJson(document.root(), Star()).ok());
}

}  // namespace
}  // namespace xccl
