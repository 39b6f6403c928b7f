#include "ir/verify/verify_schedule.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "ir/analysis/bitwise_same.h"

namespace xccl {
namespace {

constexpr TransferOp kCopy = TransferOp::kCopy, kReduce = TransferOp::kReduce;

// Four GPUs 0..3 around switch s (links 2r: r->s, 2r+1: s->r), then a bidirectional chain 0-1-2 of direct
// links: 8: 0->1, 9: 1->0, 10: 1->2, 11: 2->1.
Node Gpu(int id) {
  Node node;
  node.id = std::to_string(id);
  return node;
}

Topology Machine(bool multicast, bool reduce) {
  TopologySpec spec;
  spec.name = "machine";
  for (int r = 0; r < 4; ++r) spec.nodes.push_back(Gpu(r));
  spec.nodes.push_back(Node{NodeKind::kSwitch, "s", std::nullopt, multicast, reduce});
  const auto cable = [&](int a, int b) {
    spec.links.push_back(Link{NodeId(a), NodeId(b), 1000});
    spec.links.push_back(Link{NodeId(b), NodeId(a), 1000});
  };
  for (int r = 0; r < 4; ++r) cable(r, 4);
  cable(0, 1);
  cable(1, 2);
  return Topology::Create(spec).value();
}

Collective Make(CollectiveKind kind, int ranks, std::optional<int> root = std::nullopt) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(ranks);
  if (root) spec.root = Rank(*root);
  return Collective::Create(spec).value();
}

struct Move {
  int chunk, count, src, dst;
  std::vector<int> links;
  TransferOp op;
  int step;
};

Schedule Build(int chunks, const std::vector<Move>& moves) {
  Schedule schedule;
  schedule.num_chunks = chunks;
  for (const Move& m : moves) {
    std::vector<LinkId> links;
    for (int l : m.links) links.push_back(LinkId(l));
    schedule.Add(ChunkId(m.chunk), m.count, Rank(m.src), Rank(m.dst), links, m.op, m.step);
  }
  return schedule;
}

std::vector<std::string> Texts(const std::vector<Violation>& violations) {
  std::vector<std::string> texts;
  for (const Violation& v : violations) texts.push_back(ToString(v));
  return texts;
}

struct Case {
  std::string name;
  Collective collective;
  std::vector<Move> moves;
  std::vector<std::string> expected;
  bool multicast = false, reduce = false;
  std::function<void(Schedule&)> edit = nullptr;
};

const Collective kGather2 = Make(CollectiveKind::kAllgather, 2);
const Collective kReduce2 = Make(CollectiveKind::kAllreduce, 2);
const Collective kReduce3 = Make(CollectiveKind::kAllreduce, 3);
const Collective kCast3 = Make(CollectiveKind::kBroadcast, 3, 0);
const Collective kSum3 = Make(CollectiveKind::kReduce, 3, 0);
const Move kZero = {0, 1, 0, 1, {8}, kCopy, 0}, kOne = {1, 1, 1, 0, {9}, kCopy, 0};

std::vector<Case> AcceptedCases() {
  return {
      {"allgather over two links", kGather2, {kZero, kOne}, {}},
      {"through the switch", kGather2, {{0, 1, 0, 1, {0, 3}, kCopy, 0}, kOne}, {}},
      {"one rank, nothing to do", Make(CollectiveKind::kAllreduce, 1), {}, {}},
      {"an exchange reads both values as they were",
       kReduce2,
       {{0, 1, 0, 1, {8}, kReduce, 0}, {0, 1, 1, 0, {9}, kReduce, 0}},
       {}},
      {"two reductions into one rank in one step",
       kSum3,
       {{0, 1, 1, 0, {9}, kReduce, 0}, {0, 1, 2, 0, {4, 1}, kReduce, 0}},
       {}},
      {"gaps between steps", kCast3, {kZero, {0, 1, 1, 2, {10}, kCopy, 5}}, {}},
      {"through a rank outside the collective",
       Make(CollectiveKind::kGather, 2, 1),
       {{0, 1, 0, 3, {0, 7}, kCopy, 0}, {0, 1, 3, 1, {6, 3}, kCopy, 1}},
       {}},
      {"multicast tree", kCast3, {{0, 1, 0, 1, {0, 3, 5}, kCopy, 0}}, {}, true},
      {"in-switch reduction", kSum3, {{0, 1, 1, 0, {2, 4, 1}, kReduce, 0}}, {}, false, true},
      {"in-switch reduction into a rank that holds nothing",
       kReduce3,
       {{0, 1, 0, 3, {0, 2, 4, 7}, kCopy, 0}, {0, 1, 3, 0, {6, 1, 3, 5}, kCopy, 1}},
       {},
       true,
       true},
  };
}

std::vector<Case> RejectedCases() {
  return {
      {"columns of different length",
       kGather2,
       {kZero, kOne},
       {"[S1] schedule.src: 1 entries; expected 2, as schedule.first has"},
       false,
       false,
       [](Schedule& s) { s.src.pop_back(); }},
      {"wrong number of chunks",
       kGather2,
       {kZero, kOne},
       {"[S1] schedule.chunks: 3; allgather has 2"},
       false,
       false,
       [](Schedule& s) { s.num_chunks = 3; }},
      {"a member outside the topology",
       Make(CollectiveKind::kAllreduce, 5),
       {},
       {"[S1] collective.ranks: rank 4; ranks of machine are 0..3"}},
      {"values out of range",
       Make(CollectiveKind::kAllgather, 4),
       {{0, 0, 0, 1, {8}, kCopy, 0},
        {3, 2, 0, 1, {8}, kCopy, 0},
        {-1, 1, 0, 1, {8}, kCopy, 0},
        {0, 1, 4, 1, {8}, kCopy, 0},
        {0, 1, 0, -2, {8}, kCopy, 0},
        {0, 1, 1, 1, {8}, kCopy, 0}},
       {"[S1] transfer 0: count 0; expected at least 1",
        "[S1] transfer 1: 2 chunks from 3 on; chunks are 0..3",
        "[S1] transfer 2: 1 chunks from -1 on; chunks are 0..3", "[S1] transfer 3: src 4; ranks are 0..3",
        "[S1] transfer 4: dst -2; ranks are 0..3", "[S1] transfer 5: rank 1 sends to itself"}},
      {"no such path",
       kGather2,
       {kZero, kOne},
       {"[S1] transfer 0: path 7; paths are 0..1"},
       false,
       false,
       [](Schedule& s) { s.path[0] = PathId(7); }},
      {"steps",
       kGather2,
       {kZero, {1, 1, 1, 0, {9}, kCopy, 3}},
       {"[S1] transfer 0: step 4; the first step is 0", "[S1] transfer 1: step 3 after step 4"},
       false,
       false,
       [](Schedule& s) { s.step[0] = 4; }},
      {"a step beyond the limit",
       kGather2,
       {kZero, kOne},
       {"[S1] transfer 1: step 16777216; at most 16777216 steps are supported"},
       false,
       false,
       [](Schedule& s) { s.step[1] = 1 << 24; }},

      {"a path without links",
       kGather2,
       {{0, 1, 0, 1, {}, kCopy, 0}, kOne},
       {"[S2] step 0: path from rank 0 to rank 1 has no links"}},
      {"no such link",
       kGather2,
       {{0, 1, 0, 1, {12}, kCopy, 0}, kOne},
       {"[S2] step 0: path from rank 0 to rank 1 names link 12; links are 0..11"}},
      {"through a GPU",
       kCast3,
       {kZero, {0, 1, 0, 2, {8, 10}, kCopy, 1}},
       {"[S2] step 1: path from rank 0 to rank 2 passes gpu 1; through a GPU it is two transfers"}},
      {"links apart",
       kGather2,
       {{0, 1, 0, 1, {3, 0}, kCopy, 0}, kOne},
       {"[S2] step 0: path from rank 0 to rank 1 starts at switch s; expected a gpu"}},
      {"ends nowhere",
       kGather2,
       {{0, 1, 0, 1, {0}, kCopy, 0}, kOne},
       {"[S2] step 0: path from rank 0 to rank 1 ends at switch s; expected a gpu"}},
      {"starts nowhere",
       kGather2,
       {{0, 1, 0, 1, {3}, kCopy, 0}, kOne},
       {"[S2] step 0: path from rank 0 to rank 1 starts at switch s; expected a gpu"}},
      {"a link twice",
       kGather2,
       {{0, 1, 0, 1, {0, 0, 3}, kCopy, 0}, kOne},
       {"[S2] step 0: path from rank 0 to rank 1 visits switch s twice"}},
      {"another destination",
       kGather2,
       {{0, 1, 0, 1, {0, 5}, kCopy, 0}, kOne},
       {"[S2] step 0: path from rank 0 to rank 1 goes from rank 0 to rank 2",
        "[S6] end: rank 1 has nothing of chunk 0; expected {0}"}},
      {"a switch that does not multicast",
       kCast3,
       {{0, 1, 0, 1, {0, 3, 5}, kCopy, 0}},
       {"[S2] step 0: path from rank 0 to rank 1 branches at switch s, which does not multicast",
        "[S6] end: rank 2 has nothing of chunk 0; expected {0}"},
       false,
       true},
      {"a GPU does not multicast",
       kCast3,
       {{0, 1, 0, 1, {8, 0, 5}, kCopy, 0}},
       {"[S2] step 0: path from rank 0 to rank 1 branches at gpu 0, which does not multicast",
        "[S6] end: rank 2 has nothing of chunk 0; expected {0}"},
       true},
      {"a switch that does not reduce",
       kSum3,
       {{0, 1, 1, 0, {2, 4, 1}, kReduce, 0}},
       {"[S2] step 0: path from rank 1 to rank 0 joins at switch s, which does not reduce",
        "[S6] end: rank 0 has {0,1} of chunk 0; expected {0..2}"},
       true},
      {"both ends joined",
       kCast3,
       {{0, 1, 0, 1, {0, 6, 3, 5}, kCopy, 0}},
       {"[S2] step 0: path from rank 0 to rank 1 joins 2 sources with 2 destinations; expected one of either",
        "[S6] end: rank 2 has nothing of chunk 0; expected {0}"},
       true,
       true},
      {"a reduction's links out of order",
       kSum3,
       {{0, 1, 1, 0, {2, 1, 4}, kReduce, 0}},
       {"[S2] step 0: path from rank 1 to rank 0 ends at switch s; expected a gpu",
        "[S6] end: rank 0 has {0,1} of chunk 0; expected {0..2}"},
       false,
       true},

      {"sent in the step in which it arrives",
       kCast3,
       {kZero, {0, 1, 1, 2, {10}, kCopy, 0}},
       {"[S3] step 0: rank 1 sends chunk 0, which it first holds at step 1",
        "[S6] end: rank 2 has nothing of chunk 0; expected {0}"}},
      {"never held",
       kGather2,
       {kZero, kOne, {1, 1, 3, 2, {6, 5}, kCopy, 1}},
       {"[S3] step 1: rank 3 sends chunk 1, which it never holds"}},
      {"reduced into nothing",
       kSum3,
       {{0, 1, 1, 3, {2, 7}, kReduce, 0}, {0, 1, 1, 0, {9}, kReduce, 0}, {0, 1, 2, 0, {4, 1}, kReduce, 0}},
       {"[S3] step 0: rank 3 reduces into chunk 0, which it never holds"}},

      {"reduced twice",
       kReduce2,
       {{0, 1, 0, 1, {8}, kReduce, 0}, {0, 1, 1, 0, {9}, kCopy, 1}, {0, 1, 0, 1, {8}, kReduce, 2}},
       {"[S4] step 2: rank 1 reduces contribution 0 of chunk 0 twice"}},
      {"reduced twice in a switch",
       kSum3,
       {{0, 1, 1, 2, {10}, kReduce, 0}, {0, 1, 1, 0, {2, 4, 1}, kReduce, 1}},
       {"[S4] step 1: the switch before rank 0 reduces chunk 0 with contribution 1 twice",
        "[S6] end: rank 0 has {0} of chunk 0; expected {0..2}"},
       false,
       true},

      {"two copies in one step",
       kGather2,
       {kZero, kOne, {0, 1, 0, 1, {0, 3}, kCopy, 0}},
       {"[S5] step 0: rank 1 is sent chunk 0 twice, not both to reduce"}},
      {"a copy beside a reduction",
       kSum3,
       {{0, 1, 1, 0, {9}, kReduce, 0}, {0, 1, 2, 0, {4, 1}, kCopy, 0}, {0, 1, 2, 0, {4, 1}, kReduce, 1}},
       {"[S5] step 0: rank 0 is sent chunk 0 twice, not both to reduce"}},

      {"a chunk is missing", kGather2, {kZero}, {"[S6] end: rank 0 has nothing of chunk 1; expected {1}"}},
      {"a contribution is missing",
       kReduce3,
       {{0, 1, 0, 1, {8}, kReduce, 0}, {0, 1, 1, 0, {9}, kCopy, 1}, {0, 1, 1, 2, {10}, kCopy, 1}},
       {"[S6] end: rank 0 has {0,1} of chunk 0; expected {0..2}",
        "[S6] end: rank 1 has {0,1} of chunk 0; expected {0..2}",
        "[S6] end: rank 2 has {0,1} of chunk 0; expected {0..2}"}},

      {"no symmetry of the machine",  // translated_test has more of them
       kGather2,
       {kZero, kOne},
       {"[S7] generator 0: 2 images; machine has 5 nodes"},
       false,
       false,
       [](Schedule& s) {
         s.symmetry = {Automorphism{2, {NodeId(1), NodeId(0)}}};
       }},
      {"damage without symmetry",  // damaged_test has more of them
       kGather2,
       {kZero, kOne},
       {"[S8] missing: no symmetry; expected a compressed schedule"},
       false,
       false,
       [](Schedule& s) {
         s.missing.lost = {Link{NodeId(0), NodeId(1), 1000}};
       }},
      {"ways without lost hosts",  // lost_hosts_test has more of them
       kGather2,
       {kZero, kOne},
       {"[S9] ways: no host is lost; expected none"},
       false,
       false,
       [](Schedule& s) { s.ways = {{LinkId(0)}}; }},
  };
}

std::vector<Violation> Verify(const Case& c) {
  Schedule schedule = Build(c.collective.num_chunks(), c.moves);
  if (c.edit) c.edit(schedule);
  return VerifySchedule(schedule, c.collective, Machine(c.multicast, c.reduce));
}

TEST(VerifySchedule, Accepts) {
  for (const Case& c : AcceptedCases()) EXPECT_EQ(Texts(Verify(c)), c.expected) << c.name;
}

TEST(VerifySchedule, Rejects) {
  for (const Case& c : RejectedCases()) EXPECT_EQ(Texts(Verify(c)), c.expected) << c.name;
}

TEST(VerifySchedule, EveryRuleHasARejection) {
  std::set<std::string_view> rejected;
  const std::vector<Case> cases = RejectedCases();
  for (const Case& c : cases) rejected.insert(std::string_view(c.expected.front()).substr(1, 2));
  for (std::string_view rule : kScheduleRules) EXPECT_TRUE(rejected.contains(rule)) << rule;
}

TEST(VerifySchedule, FirstViolationsByStepAreKept) {
  const Collective gather = Make(CollectiveKind::kAllgather, 2).WithChunks(2000);
  std::vector<Move> moves;
  for (int c = 0; c < 1999; ++c) moves.push_back({c, 1, 1, 0, {9}, kCopy, c});  // rank 1 does not hold c
  Schedule schedule = Build(gather.num_chunks(), moves);
  const std::vector<Violation> violations = VerifySchedule(schedule, gather, Machine(false, false));
  ASSERT_EQ(violations.size(), static_cast<size_t>(kMaxViolations));
  for (int i = 0; i < kMaxViolations; ++i)
    EXPECT_EQ(ToString(violations[i]), "[S3] step " + std::to_string(i) + ": rank 1 sends chunk " +
                                           std::to_string(i) + ", which it never holds");
  EXPECT_EQ(ToStatus(violations).message(),
            "[S3] step 0: rank 1 sends chunk 0, which it never holds (and at least 19 more)");
}

TEST(VerifySchedule, StatusNamesTheFirstAndCountsTheOthers) {
  const Violation one{"S6", "end", "rank 0 has nothing"};
  EXPECT_EQ(ToStatus({}), OkStatus());
  EXPECT_EQ(ToStatus({one}), InvalidInput("[S6] end: rank 0 has nothing"));
  EXPECT_EQ(ToStatus({one, one, one}), InvalidInput("[S6] end: rank 0 has nothing (and 2 more)"));
}

// Rank r ends with the sum of ranks 0 to r.
Collective Scan3() {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kCustom;
  spec.ranks = AllRanks(3);
  spec.custom_name = "scan";
  spec.custom_weights = {1};
  for (int32_t r = 0; r < 3; ++r) {
    spec.pre.push_back({Rank(r), PartId(0), {Rank(r)}});
    spec.post.push_back({Rank(r), PartId(0), AllRanks(r + 1)});
  }
  return *Collective::Create(std::move(spec));
}

TEST(IsBitwiseSame, ComparesExpressions) {
  const Topology machine = Machine(true, true);
  struct {
    std::string name;
    Collective collective;
    std::vector<Move> moves;
    bool expected;
  } const cases[] = {
      {"nothing is reduced", kGather2, {kZero, kOne}, true},
      {"ranks of a scan end with different sums",
       Scan3(),
       {{0, 1, 0, 1, {8}, kReduce, 0}, {0, 1, 1, 2, {10}, kReduce, 1}},
       true},
      {"an exchange commutes",
       kReduce2,
       {{0, 1, 0, 1, {8}, kReduce, 0}, {0, 1, 1, 0, {9}, kReduce, 0}},
       true},
      {"one sum, copied",
       kReduce3,
       {{0, 1, 0, 1, {8}, kReduce, 0},
        {0, 1, 1, 2, {10}, kReduce, 1},
        {0, 1, 2, 1, {11}, kCopy, 2},
        {0, 1, 1, 0, {9}, kCopy, 3}},
       true},
      {"a sum of three in one step, and one in two",
       kReduce3,
       {{0, 1, 1, 0, {9}, kReduce, 0},
        {0, 1, 2, 0, {4, 1}, kReduce, 0},
        {0, 1, 0, 2, {0, 5}, kReduce, 0},
        {0, 1, 1, 2, {10}, kReduce, 1},
        {0, 1, 0, 1, {8}, kCopy, 1}},
       false},
      {"three sums of three, each in one step",
       kReduce3,
       {{0, 1, 1, 0, {9}, kReduce, 0},
        {0, 1, 2, 0, {4, 1}, kReduce, 0},
        {0, 1, 0, 1, {8}, kReduce, 0},
        {0, 1, 2, 1, {11}, kReduce, 0},
        {0, 1, 0, 2, {0, 5}, kReduce, 0},
        {0, 1, 1, 2, {10}, kReduce, 0}},
       true},
      {"one in-switch reduction, multicast",
       kReduce3,
       {{0, 1, 1, 0, {2, 4, 1}, kReduce, 0}, {0, 1, 0, 1, {0, 3, 5}, kCopy, 1}},
       true},
      {"an in-switch reduction at every rank",
       kReduce3,
       {{0, 1, 1, 0, {2, 4, 1}, kReduce, 0},
        {0, 1, 0, 1, {0, 4, 3}, kReduce, 0},
        {0, 1, 0, 2, {0, 2, 5}, kReduce, 0}},
       false},
  };
  for (const auto& c : cases) {
    const Schedule schedule = Build(c.collective.num_chunks(), c.moves);
    ASSERT_EQ(Texts(VerifySchedule(schedule, c.collective, machine)), std::vector<std::string>{}) << c.name;
    EXPECT_EQ(IsBitwiseSame(schedule, c.collective, machine), c.expected) << c.name;
  }
}

// A ring allgather on 1,024 ranks: 1,047,552 transfers.
TEST(VerifySchedule, AMillionTransfers) {
  constexpr int kRanks = 1024;
  TopologySpec spec;
  spec.name = "ring";
  for (int r = 0; r < kRanks; ++r) {
    spec.nodes.push_back(Gpu(r));
    spec.links.push_back(Link{NodeId(r), NodeId((r + 1) % kRanks), 1000});
  }
  const Topology ring = Topology::Create(spec).value();
  const Collective gather = Make(CollectiveKind::kAllgather, kRanks);
  Schedule schedule;
  schedule.num_chunks = kRanks;
  for (int step = 0; step + 1 < kRanks; ++step)
    for (int r = 0; r < kRanks; ++r) {
      const LinkId link(r);
      schedule.Add(ChunkId((r + kRanks - step) % kRanks), 1, Rank(r), Rank((r + 1) % kRanks),
                   std::span(&link, 1), kCopy, step);
    }
  EXPECT_EQ(Texts(VerifySchedule(schedule, gather, ring)), std::vector<std::string>{});
  schedule.src.back() = Rank(5);
  EXPECT_EQ(
      Texts(VerifySchedule(schedule, gather, ring)),
      std::vector<std::string>{"[S2] step 1022: path from rank 5 to rank 0 goes from rank 1023 to rank 0"});
}

}  // namespace
}  // namespace xccl
