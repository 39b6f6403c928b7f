#include "synth/replan/replan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"
#include "synth/engines.h"
#include "topologies/failures.h"

namespace xccl {
namespace {

using testing::Machine;

Collective MakeCollective(CollectiveKind kind, const std::vector<Rank>& ranks) {
  return Collective::Create(testing::SpecOf(kind, ranks)).value();
}

Plan MakePlan(const Topology& topology, const Collective& collective, const std::string& engine,
              int64_t size = 1 << 20) {
  Synthesis made = FindEngine(engine)
                       .value()
                       ->Synthesize({.topology = &topology, .collective = &collective, .size_bytes = size})
                       .value();
  Plan plan{topology, std::move(made.collective), std::move(made.schedule), std::nullopt, {}};
  plan.made_by.engine = engine;
  return plan;
}

Topology Spoilt(const Topology& topology, void (*spoil)(TopologySpec&)) {
  TopologySpec spec = topology.spec();
  spoil(spec);
  return Topology::Create(std::move(spec)).value();
}

void ExpectRight(const StatusOr<Synthesis>& made, const SynthesisRequest& request, const std::string& what) {
  ASSERT_TRUE(made.ok()) << what << ": " << made.status().message();
  EXPECT_EQ(made->collective.spec(), request.collective->spec()) << what;
  const std::vector<Violation> violations =
      VerifySchedule(made->schedule, made->collective, *request.topology);
  EXPECT_TRUE(violations.empty()) << what << ": " << ToString(violations.front());
}

constexpr CollectiveKind kKinds[] = {
    CollectiveKind::kAllreduce,     CollectiveKind::kAllgather,      CollectiveKind::kAllgatherv,
    CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kBroadcast,
    CollectiveKind::kReduce,        CollectiveKind::kGather,         CollectiveKind::kScatter,
    CollectiveKind::kAlltoall,      CollectiveKind::kAlltoallv,      CollectiveKind::kSendrecv,
    CollectiveKind::kBarrier};

// Every collective on every shape of machine, with one or three failed cables. Members may be a subset;
// then other ranks relay. Engines with very different plans alternate; XCCL_LONG=1 runs all of them
// everywhere.
TEST(Replan, RepairedPlansAreRight) {
  const bool all = std::getenv("XCCL_LONG") != nullptr;
  int repaired = 0, turn = 0;
  for (const Machine& machine : testing::Machines()) {
    if (machine.topology.num_ranks() < 3) continue;
    for (CollectiveKind kind : kKinds) {
      for (const std::vector<Rank>& members : testing::MemberLists(machine.topology.num_ranks())) {
        const Collective collective = MakeCollective(kind, members);
        int engine_turn = turn++;
        for (const char* engine : {"bfb", "flow", "ring", "forest", "halving-doubling", "direct", "greedy"}) {
          if (++engine_turn % 4 != 0 && !all) continue;
          const SynthesisRequest whole{
              .topology = &machine.topology, .collective = &collective, .size_bytes = 1 << 20};
          if (!FindEngine(engine).value()->Serves(whole).ok()) continue;
          const StatusOr<Synthesis> made = FindEngine(engine).value()->Synthesize(whole);
          if (!made.ok()) continue;
          Plan plan{machine.topology, made->collective, made->schedule, std::nullopt, {}};
          for (int32_t cables = 1; cables <= 3; cables += 2) {
            const StatusOr<Failure> failure =
                FailCables(machine.topology, cables, static_cast<uint64_t>(cables),
                           [&](const Topology& left) { return CheckReachable(left, collective).ok(); });
            if (!failure.ok()) continue;
            SynthesisRequest request = whole;
            request.topology = &failure->topology;
            const StatusOr<Synthesis> again = Replan(plan, request);
            const std::string what = machine.name + " " + std::string(ToString(kind)) + " " + engine;
            if (!again.ok()) {
              EXPECT_NE(again.status().message().find("partial sums"), std::string::npos)
                  << what << ": " << again.status().message();
              continue;
            }
            ExpectRight(again, request, what);
            ++repaired;
          }
        }
      }
    }
  }
  EXPECT_GT(repaired, 200);
}

TEST(Replan, KeepsAPlanThatNothingHappenedTo) {
  const Topology topology = testing::MakeGrid({4, 4}, true);
  const Collective collective = MakeCollective(CollectiveKind::kAllgather, AllRanks(topology.num_ranks()));
  const Plan plan = MakePlan(topology, collective, "bfb");
  const SynthesisRequest request{.topology = &topology, .collective = &collective, .size_bytes = 1 << 20};
  const StatusOr<Synthesis> again = Replan(plan, request);
  ExpectRight(again, request, "unharmed");
  EXPECT_EQ(again->note,
            "from a plan by bfb: 960 of 960 edges kept, 0 edges joined anew, 0 moved off busy links");
  const SimulateOptions options{.size_bytes = 1 << 20};
  EXPECT_EQ(Simulate(again->schedule, again->collective, topology, options).time_ps,
            Simulate(plan.schedule, plan.collective, topology, options).time_ps);
}

// A slow link gets less load: the plan is no slower than the unchanged one, and near the bound.
TEST(Replan, RelievesSlowLinks) {
  const Topology topology = testing::MakeFullMesh(8);
  const Topology slow =
      Spoilt(topology, [](TopologySpec& spec) { spec.links[0].bandwidth_bytes_per_s /= 10; });
  const Collective collective = MakeCollective(CollectiveKind::kAllgather, AllRanks(topology.num_ranks()));
  const Plan plan = MakePlan(topology, collective, "direct", 64 << 20);
  const SynthesisRequest request{.topology = &slow, .collective = &collective, .size_bytes = 64 << 20};
  const StatusOr<Synthesis> again = Replan(plan, request);
  ExpectRight(again, request, "slow");
  const SimulateOptions options{.size_bytes = 64 << 20};
  const int64_t left = Simulate(plan.schedule, plan.collective, slow, options).time_ps;
  const int64_t repaired = Simulate(again->schedule, again->collective, slow, options).time_ps;
  EXPECT_LT(repaired * 4, left);
  EXPECT_LT(static_cast<double>(repaired),
            1.1 * static_cast<double>(
                      LowerBound(slow, collective, 64 << 20, TimeModel::kPipelined).value().bound_ps));
}

// Without a GPU, the ranks after it are renumbered; nodes are identified by name.
TEST(Replan, PlansForTheRanksThatAreLeft) {
  const Topology topology = testing::MakeGrid({3, 3}, true);
  const Topology left = Spoilt(topology, [](TopologySpec& spec) {
    const NodeId gone(4);
    std::erase_if(spec.links, [&](const Link& l) { return l.from == gone || l.to == gone; });
    for (Link& link : spec.links)
      for (NodeId* end : {&link.from, &link.to})
        if (*end > gone) --end->value;
    spec.nodes.erase(spec.nodes.begin() + gone.value);
  });
  for (CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAlltoall,
        CollectiveKind::kReduceScatter, CollectiveKind::kBarrier}) {
    const Collective old = MakeCollective(kind, AllRanks(topology.num_ranks()));
    const Collective now = MakeCollective(kind, AllRanks(left.num_ranks()));
    const SynthesisRequest request{.topology = &left, .collective = &now, .size_bytes = 1 << 20};
    for (const char* engine : {"bfb", "forest", "greedy", "flow", "ring"}) {
      const SynthesisRequest whole{.topology = &topology, .collective = &old, .size_bytes = 1 << 20};
      if (!FindEngine(engine).value()->Serves(whole).ok()) continue;
      ExpectRight(Replan(MakePlan(topology, old, engine), request), request,
                  std::string(ToString(kind)) + " " + engine);
    }
  }
}

TEST(Replan, SameInputSameBytes) {
  const Topology topology = testing::MakeHypercube(4);
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, AllRanks(topology.num_ranks()));
  const Plan plan = MakePlan(topology, collective, "forest");
  const Failure failure = FailCables(topology, 2, 5, {}).value();
  const SynthesisRequest request{
      .topology = &failure.topology, .collective = &collective, .size_bytes = 1 << 20};
  EXPECT_EQ(Replan(plan, request)->schedule, Replan(plan, request)->schedule);
}

TEST(Replan, SaysWhatItCannotRepair) {
  const Topology mesh = testing::MakeFullMesh(4);
  const Collective allreduce = MakeCollective(CollectiveKind::kAllreduce, AllRanks(mesh.num_ranks()));
  const Collective allgather = MakeCollective(CollectiveKind::kAllgather, AllRanks(mesh.num_ranks()));
  const Collective some = MakeCollective(CollectiveKind::kAllgather, {Rank(0), Rank(1)});
  // Both ranks end with the sum, and neither is the root: a walk along edges without a root must terminate.
  const Collective pair = MakeCollective(CollectiveKind::kAllreduce, {Rank(0), Rank(1)});
  Plan sent_back = MakePlan(mesh, allgather, "direct");
  ASSERT_EQ(sent_back.collective.num_chunks(), 4);
  for (int32_t l = 0; l < mesh.num_links(); ++l)
    if (mesh.link(LinkId(l)).from == NodeId(1) && mesh.link(LinkId(l)).to == NodeId(0))
      sent_back.schedule.Add(ChunkId(0), 1, Rank(1), Rank(0), {{LinkId(l)}}, TransferOp::kCopy, 1);
  ASSERT_TRUE(VerifySchedule(sent_back.schedule, sent_back.collective, mesh).empty());
  const Collective broadcast = MakeCollective(CollectiveKind::kBroadcast, AllRanks(mesh.num_ranks()));
  CollectiveSpec other_root = broadcast.spec();
  other_root.root = Rank(other_root.root->value == 0 ? 1 : 0);
  const Collective rerooted = Collective::Create(other_root).value();
  const struct {
    Plan plan;
    const Collective* wanted;
    std::string error;
  } cases[] = {
      {MakePlan(mesh, allreduce, "recursive-doubling"), &allreduce,
       "rank 0 sends two partial sums of chunk 0"},
      {MakePlan(mesh, pair, "recursive-doubling"), &pair, "ranks exchange partial sums of chunk 0"},
      {sent_back, &allgather, "a rank is sent chunk 0, which it has"},
      {MakePlan(mesh, allgather, "ring"), &allreduce, "the plan is for allgather; expected allreduce"},
      {MakePlan(mesh, some, "direct"), &allgather,
       "the plan is for allgather on other ranks; expected all of its ranks, or some"},
      {MakePlan(mesh, broadcast, "tree"), &rerooted,
       "the plan is for broadcast with root " + std::to_string(broadcast.spec().root->value) +
           "; expected the same root"},
  };
  for (const auto& c : cases) {
    const StatusOr<Synthesis> made =
        Replan(c.plan, {.topology = &mesh, .collective = c.wanted, .size_bytes = 1 << 20});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().message(), c.error);
  }
}

// Plans of this kind have no trees at all; distributing trees must terminate on them.
TEST(Replan, PlansThatMoveNothingStayAsTheyAre) {
  const Topology ring = testing::MakeRing(4);
  const Failure failure = FailCables(ring, 1, 0, {}).value();
  CollectiveSpec nothing = testing::SpecOf(CollectiveKind::kAlltoallv, AllRanks(ring.num_ranks()));
  std::fill(nothing.counts.begin(), nothing.counts.end(), 0);
  for (const Collective& collective :
       {MakeCollective(CollectiveKind::kAllgather, {Rank(2)}), Collective::Create(nothing).value()}) {
    const SynthesisRequest whole{.topology = &ring, .collective = &collective, .size_bytes = 1 << 20};
    Synthesis made = FindEngine("auto").value()->Synthesize(whole).value();
    const Plan plan{ring, std::move(made.collective), std::move(made.schedule), std::nullopt, {}};
    SynthesisRequest request = whole;
    request.topology = &failure.topology;
    const StatusOr<Synthesis> again = Replan(plan, request);
    ExpectRight(again, request, collective.name());
    EXPECT_EQ(again->schedule.size(), 0);
  }
}

// The old plan has no path for data that it did not have to move. Taken over unchanged, it was wrong.
TEST(Replan, PlansOfOtherCountsAndTablesAreNotTakenForThese) {
  const Topology ring = testing::MakeRing(3);
  CollectiveSpec counts = testing::SpecOf(CollectiveKind::kAllgatherv, AllRanks(ring.num_ranks()));
  counts.counts = {1, 0, 2};
  CollectiveSpec other_counts = counts;
  other_counts.counts = {5, 0, 1};
  CollectiveSpec more_counts = counts;
  more_counts.counts = {1, 1, 2};
  CollectiveSpec table;
  table.kind = CollectiveKind::kCustom;
  table.ranks = AllRanks(ring.num_ranks());
  table.custom_name = "mine";
  table.custom_weights = {1};
  table.pre = {{Rank(0), PartId(0), {Rank(0)}}};
  table.post = {{Rank(1), PartId(0), {Rank(0)}}};
  CollectiveSpec other_table = table;
  other_table.post[0].rank = Rank(2);
  const struct {
    CollectiveSpec old, now;
    std::string error;
  } cases[] = {
      {counts, other_counts, ""},
      {counts, more_counts,
       "the plan is for allgatherv with nothing to move of some parts that are not empty"},
      {table, table, ""},
      {table, other_table, "the plan is for mine with other tables"},
  };
  for (const auto& c : cases) {
    const Collective old = Collective::Create(c.old).value(), now = Collective::Create(c.now).value();
    const SynthesisRequest request{.topology = &ring, .collective = &now, .size_bytes = 1 << 20};
    const StatusOr<Synthesis> made = Replan(MakePlan(ring, old, "greedy"), request);
    EXPECT_EQ(made.status().message(), c.error);
    if (c.error.empty()) ExpectRight(made, request, now.name());
  }
}

TEST(FailCables, TakesBothWaysAndKeepsWhatServes) {
  const Topology ring = testing::MakeRing(5);
  const Failure failure = FailCables(ring, 1, 3, {}).value();
  EXPECT_EQ(failure.topology.num_links(), ring.num_links() - 2);
  ASSERT_EQ(failure.cables.size(), 1U);
  EXPECT_NE(failure.cables[0].find("<->"), std::string::npos);
  EXPECT_EQ(FailCables(ring, 1, 3, {})->cables, failure.cables);
  EXPECT_EQ(FailCables(ring, 2, 0, [](const Topology&) { return false; }).status().message(),
            "test with 2 of its 5 cables failed: none of 100 draws left all ranks within reach");
  EXPECT_EQ(FailCables(ring, 6, 0, {}).status().message(), "test: 6 failed cables; expected 1 to 5");
  EXPECT_EQ(FailCables(testing::MakeFullMesh(1), 1, 0, {}).status().message(),
            "test: no cables that could fail");
}

std::vector<std::string> NamesOf(const std::vector<Failure>& failures) {
  std::vector<std::string> names;
  for (const Failure& failure : failures) names.push_back(Join(failure.cables, ", "));
  return names;
}

TEST(FailCablesOften, DrawsNoFailureTwiceAndAllWhereTheyAreFew) {
  const Topology ring = testing::MakeRing(5);
  const std::vector<std::string> three = NamesOf(FailCablesOften(ring, 1, 3, 7, {}).value());
  EXPECT_EQ(three.size(), 3U);
  EXPECT_EQ(NamesOf(FailCablesOften(ring, 1, 3, 7, {}).value()), three);
  // All five cables, and all ten pairs of them, by any seed.
  for (uint64_t seed = 0; seed < 4; ++seed)
    for (const auto& [cables, failures] : {std::pair(1, 5U), std::pair(2, 10U)}) {
      const std::vector<std::string> names = NamesOf(FailCablesOften(ring, cables, 100, seed, {}).value());
      EXPECT_EQ(names.size(), failures);
      EXPECT_EQ(std::set(names.begin(), names.end()).size(), failures);
    }
  // Only what serves: node 0 keeps both of its cables.
  const auto keeps_first = [](const Topology& left) { return left.Out(NodeId(0)).size() == 2; };
  EXPECT_EQ(FailCablesOften(ring, 1, 100, 0, keeps_first)->size(), 3U);
  EXPECT_EQ(FailCablesOften(ring, 2, 9, 0, [](const Topology&) { return false; }).status().message(),
            "test with 2 of its 5 cables failed: none of 10 draws left all ranks within reach");
}

// A full mesh of 30 has 435 cables, so 94,395 pairs: they are drawn, not listed.
TEST(FailCablesOften, DrawsNoFailureTwiceWhereTheyAreMany) {
  const std::vector<std::string> names =
      NamesOf(FailCablesOften(testing::MakeFullMesh(30), 2, 500, 1, {}).value());
  EXPECT_EQ(names.size(), 500U);
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), 500U);
}

// Two equal cables between the same nodes fail alike.
TEST(FailCablesOften, TakesOneOfEqualCables) {
  TopologySpec spec = testing::MakeRing(4).spec();
  const std::vector<Link> links = spec.links;
  spec.links.insert(spec.links.end(), links.begin(), links.end());
  EXPECT_EQ(FailCablesOften(Topology::Create(spec).value(), 1, 100, 0, {})->size(), 4U);
}

}  // namespace
}  // namespace xccl
