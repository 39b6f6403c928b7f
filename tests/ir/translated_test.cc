#include "ir/translated.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "base/random.h"
#include "ir/analysis/bitwise_same.h"
#include "ir/analysis/schedule_stats.h"
#include "ir/schedule_json.h"
#include "ir/simulate/simulate.h"
#include "ir/testing/translated.h"
#include "ir/testing/trees.h"
#include "ir/verify/verify_schedule.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

using testing::AddTree;
using testing::Compressed;
using testing::Make;
using testing::TranslatedAnswer;

Topology Load(const std::string& name) {
  StatusOr<Topology> topology = LoadTopology(name);
  EXPECT_TRUE(topology.ok()) << topology.status().message();
  return *std::move(topology);
}

std::vector<std::string> Texts(const std::vector<Violation>& violations) {
  std::vector<std::string> texts;
  for (const Violation& v : violations) texts.push_back(ToString(v));
  return texts;
}

// Checks that everything reported for the compressed form equals that for the plain form.
void ExpectSame(const TranslatedAnswer& answer, const Topology& topology, const std::string& name) {
  const auto& [collective, schedule] = answer;
  ASSERT_EQ(Texts(VerifySchedule(schedule, collective, topology)), std::vector<std::string>{}) << name;
  const StatusOr<Schedule> expanded = Expand(schedule, collective, topology);
  ASSERT_TRUE(expanded.ok()) << expanded.status().message();
  const Schedule& plain = *expanded;
  ASSERT_EQ(Texts(VerifySchedule(plain, collective, topology)), std::vector<std::string>{}) << name;
  Schedule normalized = plain;
  Normalize(normalized);
  EXPECT_EQ(normalized, plain) << name;
  EXPECT_EQ(ExpandedTransfers(schedule, collective, topology), plain.size()) << name;
  const ScheduleStats a = Stats(schedule, collective, topology), b = Stats(plain, collective, topology);
  EXPECT_EQ(a.transfers, b.transfers) << name;
  EXPECT_EQ(a.messages, b.messages) << name;
  EXPECT_EQ(a.steps, b.steps) << name;
  EXPECT_EQ(a.rounds, b.rounds) << name;
  EXPECT_EQ(a.depth, b.depth) << name;
  EXPECT_EQ(IsBitwiseSame(schedule, collective, topology), IsBitwiseSame(plain, collective, topology))
      << name;
  for (TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
    for (int64_t size : {int64_t{1} << 10, int64_t{1} << 20, int64_t{1} << 30, int64_t{999'999}}) {
      const SimulateOptions options{.size_bytes = size, .model = model, .record_links = true};
      const Simulation x = Simulate(schedule, collective, topology, options);
      const Simulation y = Simulate(plain, collective, topology, options);
      EXPECT_EQ(x.time_ps, y.time_ps) << name << ", " << ToString(model) << ", " << size;
      EXPECT_EQ(x.segment_bytes, y.segment_bytes) << name;
      EXPECT_EQ(x.link_busy_ps, y.link_busy_ps) << name;
    }
  }
  std::ostringstream out;
  JsonWriter writer(out);
  WriteScheduleJson(schedule, topology, writer);
  writer.Finish();
  const std::string text = out.str();
  const StatusOr<JsonDocument> document = JsonDocument::Parse(text, "a.json");
  ASSERT_TRUE(document.ok()) << name;
  const StatusOr<Schedule> read = ReadScheduleJson(document->root(), topology);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, schedule) << name;
}

TEST(Translated, SameAsPlain) {
  Random random(11);
  const std::string overhead = "@bandwidth=50GB/s,latency=700ns,overhead=300ns";
  for (const std::string& name :
       {std::string("torus:4x4"), std::string("torus:3x5"), "torus:2x3x2" + overhead,
        std::string("hypercube:4"), std::string("full-mesh:5"), std::string("nvswitch:6"),
        std::string("mesh:4x4"), std::string("rail-2"), "leaf-spine:3x2x2" + overhead, std::string("mi250x"),
        std::string("dgx1-full"), std::string("ring:8")}) {
    const Topology topology = Load(name);
    const SymmetryGroup group = FindTranslations(topology);
    ASSERT_GT(group.order(), 1) << name;
    for (CollectiveKind kind :
         {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter, CollectiveKind::kAllreduce})
      for (int32_t chunks : {1, 3})
        ExpectSame(Compressed(topology, group, kind, chunks, random), topology,
                   fmt::format("{} {} {}", name, ToString(kind), chunks));
  }
}

TEST(Translated, Alltoall) {
  Random random(5);
  for (const char* name : {"torus:3x4", "mesh:4x4", "full-mesh:6", "nvswitch:5"}) {
    const Topology topology = Load(name);
    const SymmetryGroup group = FindTranslations(topology);
    const int32_t n = topology.num_ranks();
    const Collective collective = Make(CollectiveKind::kAlltoall, n).WithChunks(2);
    Schedule schedule;
    schedule.num_chunks = collective.num_chunks();
    for (int32_t orbit = 0; orbit < group.num_rank_orbits(); ++orbit) {
      const Rank from = group.Representative(orbit);
      for (int32_t to = 0; to < n; ++to)
        if (to != from.value)
          AddTree(topology, random, ChunkId((from.value * n + to) * 2 + 1), from, 0, schedule);
      for (int32_t to = 0; to < n; ++to)
        if (to != from.value)
          AddTree(topology, random, ChunkId((from.value * n + to) * 2), from, 0, schedule);
    }
    schedule.symmetry = group.generators();
    Normalize(schedule);
    ExpectSame({collective, schedule}, topology, name);
  }
}

// Sums and copies over trees through one switch: translates of a tree meet on its links, though no
// translation keeps a link in place.
TEST(Translated, TranslatesOfATreeMeetOnLinks) {
  const Topology topology = TreeSwitch(4);
  const SymmetryGroup group = FindTranslations(topology);
  ASSERT_EQ(group.order(), 4);
  const Collective collective = Make(CollectiveKind::kAllreduce, 4).WithChunks(16);
  const Rank others[] = {Rank(1), Rank(2), Rank(3)};
  Schedule schedule;
  schedule.num_chunks = collective.num_chunks();
  for (int32_t c = 0; c < 4; ++c) {
    schedule.Add(ChunkId(c), 1, Rank(3), Rank(0), TreePath(topology, Rank(0), others, true, 0),
                 TransferOp::kReduce, c);
    schedule.Add(ChunkId(c), 1, Rank(0), Rank(1), TreePath(topology, Rank(0), others, false, 0),
                 TransferOp::kCopy, c + 1);
  }
  schedule.symmetry = group.generators();
  Normalize(schedule);
  ExpectSame({collective, schedule}, topology, "tree switch");
}

// Ranges of chunks that extend from one orbit's part into the next one's.
TEST(Translated, RangesOverSeveralParts) {
  const Topology topology = Load("mesh:1x4");  // orbits {0, 3} and {1, 2}
  const SymmetryGroup group = FindTranslations(topology);
  ASSERT_EQ(group.num_rank_orbits(), 2);
  const Collective collective = Make(CollectiveKind::kAllgather, 4);
  Schedule schedule;
  schedule.num_chunks = 4;
  const auto link = [&](int32_t a, int32_t b) {
    for (LinkId l : topology.Out(NodeId(a)))
      if (topology.link(l).to == NodeId(b)) return std::vector<LinkId>{l};
    return std::vector<LinkId>();
  };
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), link(0, 1), TransferOp::kCopy, 0);
  schedule.Add(ChunkId(1), 1, Rank(1), Rank(0), link(1, 0), TransferOp::kCopy, 0);
  schedule.Add(ChunkId(0), 2, Rank(1), Rank(2), link(1, 2), TransferOp::kCopy, 1);
  schedule.Add(ChunkId(0), 2, Rank(2), Rank(3), link(2, 3), TransferOp::kCopy, 2);
  schedule.symmetry = group.generators();
  ExpectSame({collective, schedule}, topology, "mesh");
  // Runs whose images are neighbours, too, stay one transfer.
  EXPECT_EQ(ExpandedTransfers(schedule, collective, topology), 8);
}

TEST(Translated, LimitOnThePlainForm) {
  Random random(2);
  const Topology topology = Load("torus:3x3");
  const TranslatedAnswer answer =
      Compressed(topology, FindTranslations(topology), CollectiveKind::kAllgather, 1, random);
  EXPECT_TRUE(Expand(answer.schedule, answer.collective, topology, 72).ok());
  const StatusOr<Schedule> refused = Expand(answer.schedule, answer.collective, topology, 71);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status(),
            LimitReached("schedule: 72 transfers without its symmetry; at most 71 are written out"));
}

// An allreduce with uneven rounding: translates of a chunk differ by an element, so the plain form is
// simulated.
TEST(Translated, UnevenBytes) {
  Random random(3);
  const Topology topology = Load("torus:3x3");
  const TranslatedAnswer answer =
      Compressed(topology, FindTranslations(topology), CollectiveKind::kAllreduce, 1, random);
  const StatusOr<Translations> translations =
      Translations::Create(answer.schedule, answer.collective, topology);
  ASSERT_TRUE(translations.ok());
  EXPECT_TRUE(translations->KeepSizes(CollectiveSizes(answer.collective, 36)));
  EXPECT_FALSE(translations->KeepSizes(CollectiveSizes(answer.collective, 40)));
}

TEST(Translated, TranslationsForACollective) {
  const Topology torus = Load("torus:3x4");
  CollectiveSpec some;
  some.kind = CollectiveKind::kAllgather;
  some.ranks = {Rank(0), Rank(1)};
  CollectiveSpec cast = Make(CollectiveKind::kAllgather, 12).spec();
  cast.kind = CollectiveKind::kBroadcast;
  cast.root = Rank(0);
  std::vector<int64_t> counts(12, 5);
  const struct {
    Collective collective;
    int64_t order;
  } cases[] = {
      {Make(CollectiveKind::kAllgather, 12).WithChunks(4), 12},
      {Make(CollectiveKind::kReduceScatterv, 12, counts), 12},
      {Make(CollectiveKind::kAlltoall, 12), 12},
      {Make(CollectiveKind::kAllreduce, 12).WithChunks(24), 12},
      {Make(CollectiveKind::kAllreduce, 12).WithChunks(13), 1},
      {Make(CollectiveKind::kAllgatherv, 12, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), 1},
      {Collective::Create(some).value(), 1},
      {Collective::Create(cast).value(), 1},
  };
  for (const auto& c : cases)
    EXPECT_EQ(TranslationsFor(c.collective, torus).order(), c.order) << c.collective.name();
  const Schedule plain = Translate(Schedule(), SymmetryGroup(torus));
  EXPECT_TRUE(plain.symmetry.empty());
}

struct Rejection {
  std::string name;
  std::function<void(Schedule&)> edit;
  std::vector<std::string> expected;
};

std::vector<NodeId> Nodes(std::initializer_list<int32_t> images) {
  std::vector<NodeId> nodes;
  for (int32_t n : images) nodes.push_back(NodeId(n));
  return nodes;
}

// An allgather on ring:4 in one direction; link 2i joins i to i+1.
TEST(Translated, Rejects) {
  const Topology ring = Load("ring:4");
  const Collective gather = Make(CollectiveKind::kAllgather, 4);
  Schedule good;
  good.num_chunks = 4;
  for (int32_t i = 0; i < 3; ++i)
    good.Add(ChunkId(0), 1, Rank(i), Rank(i + 1), std::vector{LinkId(2 * i)}, TransferOp::kCopy, i);
  good.symmetry = {{4, Nodes({1, 2, 3, 0})}};
  ASSERT_EQ(Texts(VerifySchedule(good, gather, ring)), std::vector<std::string>{});
  const std::vector<Rejection> cases = {
      {"too few images",
       [](Schedule& s) { s.symmetry[0].image.pop_back(); },
       {"[S7] generator 0: 3 images; ring:4 has 4 nodes"}},
      {"no such node",
       [](Schedule& s) { s.symmetry[0].image[1] = NodeId(4); },
       {"[S7] generator 0: takes node 1 to 4; nodes are 0..3"}},
      {"not one to one",
       [](Schedule& s) { s.symmetry[0].image[1] = NodeId(1); },
       {"[S7] generator 0: takes two nodes to gpu 1"}},
      {"not a cable",
       [](Schedule& s) {
         s.symmetry[0].image = Nodes({1, 0, 2, 3});
       },
       {"[S7] generator 0: does not keep the links from gpu 0 to gpu 2"}},
      {"an order too small",
       [](Schedule& s) { s.symmetry[0].order = 2; },
       {"[S7] generator 0: order 2; so often applied it does not come back"}},
      {"an order too large",
       [](Schedule& s) { s.symmetry[0].order = 8; },
       {"[S7] symmetry: 8 elements take rank 0 to 4 ranks; expected as many"}},
      {"a rank stays",
       [](Schedule& s) {
         s.symmetry[0] = {2, Nodes({0, 3, 2, 1})};
       },
       {"[S7] symmetry: 2 elements take rank 0 to 1 ranks; expected as many"}},
      {"the same generator twice",
       [](Schedule& s) { s.symmetry.push_back(s.symmetry[0]); },
       {"[S7] symmetry: 16 elements take rank 0 to 4 ranks; expected as many"}},
      {"they do not commute",
       [](Schedule& s) {
         s.symmetry.push_back({2, Nodes({1, 0, 3, 2})});
       },
       {"[S7] symmetry: generators 0 and 1 do not commute at gpu 0",
        "[S7] symmetry: 8 elements take rank 0 to 4 ranks; expected as many"}},
      {"a chunk of another rank",
       [](Schedule& s) {
         s.Add(ChunkId(2), 1, Rank(2), Rank(3), std::vector{LinkId(4)}, TransferOp::kCopy, 2);
       },
       {"[S7] step 2: chunk 2 is moved, which is not of the lowest rank of its orbit"}},
      {"the columns are checked by the other rules",
       [](Schedule& s) { s.src[1] = Rank(0); },
       {"[S2] step 1: path from rank 0 to rank 2 goes from rank 1 to rank 2"}},
      {"a transfer is missing",
       [](Schedule& s) { s.count[2] = 0; },
       {"[S1] transfer 2: count 0; expected at least 1"}},
  };
  for (const Rejection& c : cases) {
    Schedule schedule = good;
    c.edit(schedule);
    EXPECT_EQ(Texts(VerifySchedule(schedule, gather, ring)), c.expected) << c.name;
  }
}

TEST(Translated, RejectsWhatTranslationsDoToTheCollective) {
  const Topology ring = Load("ring:4");
  Schedule schedule;
  schedule.symmetry = {{4, Nodes({1, 2, 3, 0})}};
  CollectiveSpec some;
  some.kind = CollectiveKind::kAllgather;
  some.ranks = {Rank(0), Rank(1)};
  CollectiveSpec cast = Make(CollectiveKind::kAllgather, 4).spec();
  cast.kind = CollectiveKind::kBroadcast;
  cast.root = Rank(0);
  const struct {
    Collective collective;
    std::string expected;
  } cases[] = {
      {Collective::Create(some).value(),
       "[S7] generator 0: takes rank 1 to 2, which is not in the collective"},
      {Collective::Create(cast).value(), "[S7] symmetry: broadcast has no part for each rank"},
      {Make(CollectiveKind::kAllreduce, 4).WithChunks(6),
       "[S7] symmetry: 6 chunks on 4 ranks; expected a multiple"},
      {Make(CollectiveKind::kAllgatherv, 4, {1, 1, 2, 1}),
       "[S7] generator 0: part 1 has count 1, its image 2 has 2"},
      {Make(CollectiveKind::kAllgather, 4).WithWeights({{1}, {1, 1}, {1}, {1}}),
       "[S7] generator 0: part 0 has 1 chunks, its image 1 has 2"},
      {Make(CollectiveKind::kAllgather, 4).WithWeights({{1, 2}, {2, 1}, {1, 2}, {1, 2}}),
       "[S7] generator 0: chunk 0 has weight 1, its image 2 has 2"},
  };
  for (const auto& c : cases) {
    schedule.num_chunks = c.collective.num_chunks();
    EXPECT_EQ(Texts(VerifySchedule(schedule, c.collective, ring)), std::vector<std::string>{c.expected});
  }
}

// After any one change, a compressed schedule is rejected or its plain form is right.
TEST(Translated, Mutations) {
  Random random(9);
  int32_t objected = 0;
  for (const char* name : {"torus:3x3", "nvswitch:4", "mesh:2x4"}) {
    const Topology topology = Load(name);
    const SymmetryGroup group = FindTranslations(topology);
    for (int32_t round = 0; round < 100; ++round) {
      TranslatedAnswer answer = Compressed(topology, group, CollectiveKind::kReduceScatter, 1, random);
      Schedule& s = answer.schedule;
      const auto any = [&](int64_t below) {
        return static_cast<int64_t>(random.Below(static_cast<uint64_t>(below)));
      };
      const int64_t t = any(s.size());
      std::vector<NodeId>& image =
          s.symmetry[static_cast<size_t>(any(static_cast<int64_t>(s.symmetry.size())))].image;
      switch (any(5)) {
        case 0:
          s.first[t] = ChunkId(any(s.num_chunks));
          break;
        case 1:
          s.path[t] = PathId(any(s.paths.size()));
          break;
        case 2:
          std::swap(image[static_cast<size_t>(any(topology.num_nodes()))],
                    image[static_cast<size_t>(any(topology.num_nodes()))]);
          break;
        case 3:
          s.symmetry[0].order += static_cast<int32_t>(any(3)) - 1;
          break;
        default:
          s.op[t] = TransferOp::kCopy;
      }
      const bool good = VerifySchedule(s, answer.collective, topology).empty();
      objected += good ? 0 : 1;
      const StatusOr<Schedule> plain = Expand(s, answer.collective, topology);
      EXPECT_TRUE(plain.ok() || !good) << name << " " << round;
      if (good && plain.ok()) {
        EXPECT_EQ(Texts(VerifySchedule(*plain, answer.collective, topology)), std::vector<std::string>{});
      }
    }
  }
  EXPECT_GT(objected, 200);
}

}  // namespace
}  // namespace xccl
