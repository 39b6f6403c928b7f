// What arithmetic says of questions, beside Z3 and beside brute force.
#include "synth/smt/prices.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <string>
#include <utility>

#include "base/random.h"
#include "ir/time_model.h"
#include "synth/common/phases.h"
#include "synth/common/reverse.h"
#include "synth/common/test_machines.h"
#include "synth/smt/bounds.h"
#include "synth/smt/copies.h"
#include "synth/smt/owner_trees.h"
#include "synth/smt/sum_prices.h"
#include "synth/smt/sums.h"

namespace xccl::smt {
namespace {

const SolveLimits kPlenty = {.work = 20'000'000};

// One problem of copies with all that is needed to ask about it.
struct Case {
  Topology topology, reversed;
  Phases phases;
  Machine machine;
  std::vector<Image> images;
  int32_t least_steps = 0;
  const CopyProblem& problem() const { return phases.spread; }

  Case(Topology made, CollectiveKind kind, int32_t chunks)
      : topology(std::move(made)), reversed(ReverseTopology(topology)), machine(MakeMachine(topology)) {
    const std::vector<Rank> ranks = AllRanks(topology.num_ranks());
    const Collective collective = Collective::Create(testing::SpecOf(kind, ranks)).value().WithChunks(chunks);
    phases = MakePhases(topology, reversed, collective, 1 << 20, TimeModel::kPipelined, SumAt::kEach).value();
    least_steps = FarthestNeed(machine, collective).steps;
    images = ImagesThatKeep(ImagesOf(topology, machine, 64), problem());
  }
};

RoundsBound BoundOf(const Case& one, int32_t steps, bool untimed = false) {
  return PriceCopies(one.machine, one.problem(), one.images, {.steps = steps, .untimed = untimed});
}

Verdict Ask(const Case& one, int32_t steps, int32_t rounds, bool symmetric = false) {
  return CopyQuestion(one.machine, one.problem(), one.images, steps, rounds, symmetric).Ask(kPlenty)->verdict;
}

// A strongly connected digraph: a ring through all ranks in some order, and some links more.
Topology RandomDigraph(Random& random, int32_t ranks) {
  std::vector<int32_t> order;
  for (int32_t r = 0; r < ranks; ++r) order.push_back(r);
  random.Shuffle(std::span(order));
  std::set<std::pair<int32_t, int32_t>> links;
  for (int32_t i = 0; i < ranks; ++i) links.insert({order[i], order[(i + 1) % ranks]});
  const uint64_t more = random.Below(static_cast<uint64_t>(ranks) * 2);
  for (uint64_t i = 0; i < more; ++i) {
    const int32_t a = static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks)));
    const int32_t b = static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks)));
    if (a != b) links.insert({a, b});
  }
  return testing::MakeDigraph(ranks, {links.begin(), links.end()});
}

TEST(SmtPrices, KnownBounds) {
  struct Row {
    std::string name;
    Topology topology;
    CollectiveKind kind;
    int32_t steps;
    bool untimed;
    RoundsBound expected;
  };
  const std::vector<Row> rows = {
      {"dgx1 allgather", testing::MakeDgx1(), CollectiveKind::kAllgather, 2, false, {3, 2}},
      {"dgx1 allgather, one step more", testing::MakeDgx1(), CollectiveKind::kAllgather, 3, false, {7, 6}},
      {"dgx1 alltoall", testing::MakeDgx1(), CollectiveKind::kAlltoall, 2, false, {8, 3}},
      {"dgx1 alltoall, any steps", testing::MakeDgx1(), CollectiveKind::kAlltoall, 7, true, {8, 3}},
      {"ring alltoall", testing::MakeRing(8), CollectiveKind::kAlltoall, 4, false, {8, 1}},
      {"switch allgather", testing::MakeSwitch(4), CollectiveKind::kAllgather, 2, false, {3, 1}},
      {"hypercube allgather", testing::MakeHypercube(3), CollectiveKind::kAllgather, 3, false, {7, 3}},
      {"full mesh alltoall", testing::MakeFullMesh(5), CollectiveKind::kAlltoall, 2, false, {1, 1}},
  };
  for (const Row& row : rows) {
    const Case one(row.topology, row.kind, 1);
    EXPECT_EQ(ToText(BoundOf(one, row.steps, row.untimed)), ToText(row.expected)) << row.name;
  }
}

// Whatever prices or cuts refute, Z3 refutes; and the fewest rounds that Z3 finds are no fewer than they say.
TEST(SmtPrices, RefuteNothingThatZ3Finds) {
  Random random(7);
  int refuted = 0, met = 0;
  for (int i = 0; i < 40; ++i) {
    const int32_t ranks = 3 + static_cast<int32_t>(random.Below(2));
    const CollectiveKind kind = std::array{CollectiveKind::kAllgather, CollectiveKind::kBroadcast,
                                           CollectiveKind::kAlltoall, CollectiveKind::kScatter}[i % 4];
    const int32_t chunks = 1 + static_cast<int32_t>(random.Below(2));
    const Case one(RandomDigraph(random, ranks), kind, chunks);
    const int32_t least = one.least_steps;
    for (int32_t steps = least; steps <= least + 1; ++steps) {
      const RoundsBound bound = BoundOf(one, steps);
      ASSERT_GT(bound.numerator, 0) << "nothing proved";
      const int64_t need = std::max<int64_t>(bound.Rounds(), steps);
      if (const auto cut = CutRounds(one.topology, one.machine, one.problem())) {
        EXPECT_FALSE(bound.IsLessThan(*cut)) << "a cut says more than prices of trees";
      }
      const std::string what =
          fmt::format("{} of {} ranks, case {}, {} steps", ToString(kind), ranks, i, steps);
      if (need > steps) {
        EXPECT_EQ(Ask(one, steps, static_cast<int32_t>(need - 1)), Verdict::kInfeasible) << what;
        ++refuted;
      }
      met += Ask(one, steps, static_cast<int32_t>(need)) == Verdict::kFeasible ? 1 : 0;
    }
  }
  EXPECT_GT(refuted, 20);
  EXPECT_GT(met, 40);
}

TEST(SmtPrices, SymmetricSchedulesAreSchedules) {
  Random random(3);
  for (int i = 0; i < 12; ++i) {
    const Case one(RandomDigraph(random, 4),
                   i % 2 == 0 ? CollectiveKind::kAllgather : CollectiveKind::kBroadcast, 2);
    const int32_t steps = one.least_steps;
    for (int32_t rounds = steps; rounds <= steps + 2; ++rounds)
      if (Ask(one, steps, rounds, true) == Verdict::kFeasible) {
        EXPECT_EQ(Ask(one, steps, rounds), Verdict::kFeasible) << i;
      }
  }
}

// Every rank's two links carry four chunks in two rounds where six are needed. Z3 names one of the ranks.
TEST(SmtEncoding, NamesWhatCannotBeHadTogether) {
  const Case one(testing::MakeRing(4), CollectiveKind::kAllgather, 2);
  SolverQuestion question = CopyQuestion(one.machine, one.problem(), one.images, 2, 2, false, true);
  const StatusOr<Answer> answer = question.Ask(kPlenty);
  ASSERT_EQ(answer->verdict, Verdict::kInfeasible);
  const std::string conflict = Summary(answer->core);
  EXPECT_EQ(conflict, "load of 1->2, 3->2; needs of rank 2");
}

TEST(SmtEncoding, LinksOfAReversedMachineAreNamedAsTheyRun) {
  const Topology topology = testing::MakeDigraph(3, {{0, 1}, {1, 2}, {2, 0}});
  std::vector<std::string> names;
  for (const Capacity& capacity : MakeMachine(ReverseTopology(topology), topology).capacities)
    names.push_back(capacity.name);
  EXPECT_EQ(fmt::format("{}", fmt::join(names, " ")), "2->0 0->1 1->2");
  const Machine hub = MakeMachine(testing::MakeSwitch(2));
  EXPECT_EQ(hub.capacities[0].name, "0->switch");
}

// Two GPUs at the ends of a chain of switches, joined both ways.
TEST(SmtMachine, PathsOverAHundredThousandSwitchesAreFoundWithoutRecursion) {
  constexpr int32_t kSwitches = 100'000;
  TopologySpec spec;
  spec.name = "chain";
  for (int32_t n = 0; n < kSwitches + 2; ++n)
    spec.nodes.push_back(
        {.kind = n < 2 ? NodeKind::kGpu : NodeKind::kSwitch, .id = std::to_string(n), .host = {}});
  for (int32_t n = 0; n <= kSwitches; ++n) {
    const NodeId from(n == 0 ? 0 : n + 1), to(n == kSwitches ? 1 : n + 2);
    for (const auto& [a, b] : {std::pair(from, to), std::pair(to, from)})
      spec.links.push_back({.from = a, .to = b, .bandwidth_bytes_per_s = 1'000'000'000, .latency_ps = 1});
  }
  const Machine machine = MakeMachine(Topology::Create(std::move(spec)).value());
  ASSERT_EQ(machine.edges.size(), 2u);
  EXPECT_EQ(machine.edges[0].over.size(), static_cast<size_t>(kSwitches + 1));
  EXPECT_FALSE(machine.complete);
}

SumProblem OneSum(int32_t ranks) {
  SumProblem problem;
  SumProblem::Chunk chunk{.contributions = ranks, .before = {}, .after = {}};
  for (int32_t r = 0; r < ranks; ++r) {
    chunk.before.push_back(uint64_t{1} << r);
    chunk.after.push_back((uint64_t{1} << ranks) - 1);
  }
  problem.chunks.push_back(std::move(chunk));
  return problem;
}

// Fewest steps of an allreduce of one chunk, every link once a step: breadth first over what ranks hold.
int32_t FewestSteps(const Machine& machine) {
  const int32_t n = machine.ranks;
  const int all = (1 << n) - 1;
  std::vector<int> start, full(static_cast<size_t>(n), all);
  for (int32_t r = 0; r < n; ++r) start.push_back(1 << r);
  std::set<std::vector<int>> seen = {start};
  std::deque<std::pair<std::vector<int>, int32_t>> queue = {{start, 0}};
  while (!queue.empty()) {
    const auto [held, steps] = queue.front();
    queue.pop_front();
    if (held == full) return steps;
    // What each rank may hold next: one copy, or any disjoint sums.
    std::vector<std::vector<int>> next(static_cast<size_t>(n));
    for (int32_t r = 0; r < n; ++r) {
      std::vector<int> tails;
      for (int32_t e : machine.in[r]) tails.push_back(held[machine.edges[e].from]);
      std::set<int> sums = {held[r]};
      for (int tail : tails) {
        std::set<int> more;
        for (int sum : sums)
          if ((sum & tail) == 0) more.insert(sum | tail);
        sums.insert(more.begin(), more.end());
      }
      sums.insert(tails.begin(), tails.end());
      next[r].assign(sums.begin(), sums.end());
    }
    std::vector<size_t> at(static_cast<size_t>(n), 0);
    for (;;) {
      std::vector<int> state;
      for (int32_t r = 0; r < n; ++r) state.push_back(next[r][at[r]]);
      if (seen.insert(state).second) queue.emplace_back(state, steps + 1);
      int32_t r = 0;
      while (r < n && ++at[r] == next[r].size()) at[r++] = 0;
      if (r == n) break;
    }
  }
  return -1;
}

TEST(SmtSums, FewestStepsAsByBruteForce) {
  Random random(11);
  for (int i = 0; i < 30; ++i) {
    const Topology topology = RandomDigraph(random, i % 8 == 7 ? 4 : 3);
    const Machine machine = MakeMachine(topology);
    const SumProblem problem = OneSum(machine.ranks);
    const int32_t fewest = FewestSteps(machine);
    for (int32_t steps = std::max(1, fewest - 1); steps <= fewest; ++steps) {
      const std::vector<Image> one = {Identity(machine)};
      EXPECT_EQ(ReductionQuestion(machine, problem, one, steps, steps).Ask(kPlenty)->verdict,
                steps < fewest ? Verdict::kInfeasible : Verdict::kFeasible)
          << i << ", " << steps << " steps";
    }
  }
}

TEST(SmtSums, PricedRoundsOfRings) {
  // A ring of 4: every link in both steps for the exchange of halves; 2 × 3 sends of 8 links when there is
  // time.
  const Topology ring = testing::MakeRing(4);
  const Machine machine = MakeMachine(ring);
  const SumProblem problem = OneSum(4);
  const std::vector<Image> images = ImagesOf(ring, machine, 64);
  int64_t work = 0;
  const auto bound = [&](int32_t steps) {
    const PriceResult result = PriceSums(machine, problem, images, steps, {3, 4}, {.work = 50'000'000}, work);
    return ToText(result.bound);
  };
  EXPECT_EQ(bound(2), "1");
  EXPECT_EQ(bound(4), "3/4");
  EXPECT_GT(work, 0);
}

TEST(SmtSums, InAndOutTreesAreFoundWhereCompositionFits) {
  // 4 ranks in a ring: reduce_scatter and allgather of 8 chunks take 2 × 2 steps, 3 rounds each.
  const Topology ring = testing::MakeRing(4);
  const Machine machine = MakeMachine(ring);
  const std::vector<Image> images = ImagesOf(ring, machine, 64);
  ASSERT_EQ(images.size(), 4u);
  EXPECT_EQ(OwnerTreesQuestion(machine, images, 2, 4, 6).Ask(kPlenty)->verdict, Verdict::kFeasible);
  EXPECT_EQ(OwnerTreesQuestion(machine, images, 2, 4, 5).Ask(kPlenty)->verdict, Verdict::kInfeasible);
  EXPECT_EQ(OwnerTreesQuestion(machine, images, 2, 3, 20).Ask(kPlenty)->verdict, Verdict::kInfeasible);
}

}  // namespace
}  // namespace xccl::smt
