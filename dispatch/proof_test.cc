// Plans against counts that are made here, by climbing trees from each rank that needs a row: drawn sizes and
// routings, all routings of small sizes, and changed plans. A usual run draws a share of the routings;
// XCCL_LONG=1 in its environment asks for 100,000.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "dispatch/machines_for_tests.h"
#include "dispatch/make_plan.h"
#include "dispatch/verify.h"

namespace xccl::dispatch {
namespace {

int64_t NumDraws() { return std::getenv("XCCL_LONG") != nullptr ? 100'000 : 2'000; }

// Entry::kNested: the rank nearest to the entry in the smallest block that has a nearer one than `rank`; -1
// where there is none.
int32_t NearerThan(const ExpertPlan& plan, const std::set<int32_t>& has, int32_t entry, int32_t rank) {
  for (int32_t size = 2;; size *= 2) {
    int32_t nearest = rank;
    bool all = true;
    for (const int32_t other : has) {
      if (plan.domains[other] != plan.domains[rank]) continue;
      if (other / size != rank / size)
        all = false;
      else if ((other ^ entry) < (nearest ^ entry))
        nearest = other;
    }
    if (nearest != rank) return nearest;
    if (all) return -1;
  }
}

// Where a rank gets a row from: by its tree, or by the ranks of its domain that need it.
int32_t SourceOf(const ExpertPlan& plan, std::span<const int32_t> tree, int32_t home,
                 const std::set<int32_t>& needs, int32_t rank) {
  if (plan.entry == Entry::kNested && plan.domains[rank] == plan.domains[home]) {
    std::set<int32_t> has = needs;
    has.insert(home);
    return NearerThan(plan, has, home, rank);
  }
  if (plan.entry == Entry::kFixed || plan.domains[rank] == plan.domains[home]) return tree[rank];
  int32_t planned = rank;  // the domain's entry by the tree
  while (plan.domains[tree[planned]] == plan.domains[rank]) planned = tree[planned];
  if (plan.entry == Entry::kNested) {
    const int32_t nearer = NearerThan(plan, needs, planned, rank);
    return nearer < 0 ? tree[planned] : nearer;
  }
  int32_t entry = -1;
  for (const int32_t other : needs)
    if (plan.domains[other] == plan.domains[rank] && (entry < 0 || (other ^ planned) < (entry ^ planned)))
      entry = other;
  return rank == entry ? tree[planned] : entry;
}

// Counts the rows of every pair of ranks, and finds that each needed rank gets each row once.
::testing::AssertionResult CountsAgree(const ExpertPlan& plan, const Routing& routing) {
  std::map<std::tuple<int32_t, int32_t, int32_t>, int64_t> rows;  // by lane, sender and receiver
  for (int32_t home = 0; home < plan.sizes.ranks; ++home)
    for (int32_t t = 0; t < routing.TokensOf(home); ++t) {
      std::set<int32_t> needs;
      for (const int32_t expert : routing.ExpertsOf(routing.first_token[home] + t))
        if (expert >= 0 && expert / plan.sizes.local_experts() != home)
          needs.insert(expert / plan.sizes.local_experts());
      const int32_t lane = t % plan.lanes;
      const std::span<const int32_t> tree = plan.TreeOf(lane, home);
      std::set<std::pair<int32_t, int32_t>> branches;  // receiver, sender
      for (const int32_t need : needs) {
        int32_t steps = 0;
        for (int32_t at = need; at != home; ++steps) {
          if (steps > plan.sizes.ranks)
            return ::testing::AssertionFailure() << "rank " << need << " is on a ring";
          const int32_t from = SourceOf(plan, tree, home, needs, at);
          branches.emplace(at, from);
          at = from;
        }
      }
      std::set<int32_t> got;
      for (const auto& [to, from] : branches) {
        if (!got.insert(to).second)
          return ::testing::AssertionFailure() << "rank " << to << " gets a row twice";
        ++rows[{lane, from, to}];
      }
    }
  const HopIndex index(plan);
  const std::vector<int64_t> counted = RowsOfHops(plan, index, NeedsOf(routing, plan.sizes), Call::kDispatch);
  std::map<std::tuple<int32_t, int32_t, int32_t>, int64_t> theirs;
  for (size_t h = 0; h < counted.size(); ++h) {
    const Hop& hop = plan.hops[h];
    if (counted[h] > 0) theirs[{hop.lane, hop.from.value, hop.to.value}] += counted[h];
    if (plan.aim == Aim::kLatency && counted[h] > int64_t{hop.slots} * plan.rows_per_message)
      return ::testing::AssertionFailure() << counted[h] << " rows in " << hop.slots << " slots";
  }
  if (rows != theirs) return ::testing::AssertionFailure() << "the counts of rows differ";
  return ::testing::AssertionSuccess();
}

// A drawn call of drawn sizes: some ranks without tokens, positions of -1, and sometimes one expert for all.
Routing DrawAny(const Sizes& sizes, Random& random) {
  RoutingSource source;
  if (random.Below(2) == 0) source = {.kind = RoutingSource::Kind::kZipf, .exponent = 1.2};
  const Routing full = DrawRouting(source, sizes, random);
  const bool one_expert = random.Below(8) == 0;
  const auto hot = static_cast<int32_t>(random.Below(sizes.experts));
  Routing routing{.top_k = sizes.top_k};
  for (int32_t rank = 0; rank < sizes.ranks; ++rank) {
    const auto tokens = static_cast<int32_t>(random.Below(sizes.max_tokens + 1));
    for (int32_t t = 0; t < tokens; ++t)
      for (int32_t k = 0; k < sizes.top_k; ++k) {
        const int32_t drawn =
            one_expert ? (k == 0 ? hot : -1) : full.ExpertsOf(full.first_token[rank] + t)[k];
        routing.experts.push_back(random.Below(8) == 0 ? -1 : drawn);
      }
    routing.first_token.push_back(routing.first_token.back() + tokens);
  }
  return routing;
}

TEST(Proof, DrawnRoutingsArriveAsCounted) {
  const std::vector<TestMachine> machines = TestMachines();
  constexpr int64_t kRoutingsOfPlan = 50;
  Random random(11);
  for (int64_t done = 0; done < NumDraws(); done += kRoutingsOfPlan) {
    const TestMachine& machine = machines[random.Below(machines.size())];
    const Topology topology = Read(machine);
    PlanRequest request = RequestOf(topology, 1 + static_cast<int32_t>(random.Below(12)));
    request.sizes.experts = topology.num_ranks() * (1 + static_cast<int32_t>(random.Below(4)));
    request.sizes.top_k = 1 + static_cast<int32_t>(random.Below(std::min(16, request.sizes.experts)));
    request.aim = random.Below(2) == 0 ? Aim::kLatency : Aim::kThroughput;
    request.call = random.Below(2) == 0 ? Call::kDispatch : Call::kCombine;
    const StatusOr<Groundwork> ground = Prepare(topology, request);
    ASSERT_TRUE(ground.ok()) << ground.status().message();
    const StatusOr<PlansOfRoutes> made = MakeAllRoutes(*ground);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const ExpertPlan& plan = made->plans[random.Below(made->plans.size())];
    ASSERT_TRUE(VerifyExpertPlan(plan).empty()) << machine.name << " " << plan.route;
    for (int64_t i = 0; i < kRoutingsOfPlan; ++i) {
      const Routing routing = DrawAny(plan.sizes, random);
      ASSERT_TRUE(CheckRouting(routing, plan.sizes).ok());
      ASSERT_TRUE(CountsAgree(plan, routing)) << machine.name << " " << plan.route;
      const Status moved = Replay(plan, routing, static_cast<uint64_t>(i));
      ASSERT_TRUE(moved.ok()) << moved.message() << machine.name << " " << plan.route;
    }
  }
}

// All lists of K experts or -1 without one twice.
std::vector<std::vector<int32_t>> ChoicesOf(int32_t experts, int32_t top_k) {
  std::vector<std::vector<int32_t>> lists = {{}};
  for (int32_t k = 0; k < top_k; ++k) {
    std::vector<std::vector<int32_t>> longer;
    for (const std::vector<int32_t>& list : lists)
      for (int32_t expert = -1; expert < experts; ++expert) {
        if (expert >= 0 && std::ranges::find(list, expert) != list.end()) continue;
        longer.push_back(list);
        longer.back().push_back(expert);
      }
    lists = std::move(longer);
  }
  return lists;
}

// The tokens of one rank: all lists of up to `tokens` choices, each flat.
std::vector<std::vector<int32_t>> CallsOfRank(const std::vector<std::vector<int32_t>>& choices,
                                              int32_t tokens) {
  std::vector<std::vector<int32_t>> calls = {{}}, last = {{}};
  for (int32_t t = 0; t < tokens; ++t) {
    std::vector<std::vector<int32_t>> longer;
    for (const std::vector<int32_t>& call : last)
      for (const std::vector<int32_t>& choice : choices) {
        longer.push_back(call);
        longer.back().insert(longer.back().end(), choice.begin(), choice.end());
      }
    calls.insert(calls.end(), longer.begin(), longer.end());
    last = std::move(longer);
  }
  return calls;
}

struct Small {
  std::string xml;
  int32_t experts, top_k, tokens;
  size_t routings;  // how many there are
};

TEST(Proof, AllRoutingsOfSmallSizesArriveAsCounted) {
  const std::string hosts =
      "<topology name='m'><cluster hosts='2'><gpu count='1'/><nic id='nic' count='1'/><link from='gpu:0' "
      "to='nic0' "
      "bandwidth='50GB/s' latency='0ns'/><fabric bandwidth='50GB/s' latency='1us'/></cluster></topology>";
  const std::string ring =
      "<topology name='m'><ring ranks='3' bandwidth='50GB/s' latency='500ns'/></topology>";
  for (const Small& small : {Small{hosts, 2, 2, 2, 57 * 57}, Small{hosts, 4, 1, 2, 31 * 31},
                             Small{ring, 3, 1, 2, 21 * 21 * 21}, Small{ring, 3, 2, 1, 14 * 14 * 14}}) {
    const Topology topology = Read({"small", small.xml});
    PlanRequest request = RequestOf(topology, small.tokens, small.top_k);
    request.sizes.experts = small.experts;
    const auto calls = CallsOfRank(ChoicesOf(small.experts, small.top_k), small.tokens);
    for (const Aim aim : {Aim::kLatency, Aim::kThroughput}) {
      request.aim = aim;
      StatusOr<ExpertPlan> plan = MakeExpertPlan(topology, request);
      ASSERT_TRUE(plan.ok());
      ASSERT_TRUE(VerifyExpertPlan(*plan).empty());
      std::vector<size_t> at(request.sizes.ranks);
      size_t seen = 0;
      for (bool more = true; more; ++seen) {
        Routing routing{.top_k = small.top_k};
        for (const size_t call : at) {
          routing.experts.insert(routing.experts.end(), calls[call].begin(), calls[call].end());
          routing.first_token.push_back(static_cast<int64_t>(routing.experts.size()) / small.top_k);
        }
        ASSERT_TRUE(CountsAgree(*plan, routing)) << seen;
        ASSERT_TRUE(Replay(*plan, routing, seen).ok()) << seen;
        size_t rank = 0;
        while (rank < at.size() && ++at[rank] == calls.size()) at[rank++] = 0;
        more = rank < at.size();
      }
      EXPECT_EQ(seen, small.routings);
    }
  }
}

// One change at a place that is drawn.
void Change(ExpertPlan& plan, Random& random) {
  Hop& hop = plan.hops[random.Below(plan.hops.size())];
  const auto any_rank = [&] { return static_cast<int32_t>(random.Below(plan.sizes.ranks)); };
  switch (random.Below(8)) {
    case 0:
      plan.parents[random.Below(plan.parents.size())] = any_rank();
      break;
    case 1:
      hop.to = Rank(any_rank());
      break;
    case 2:
      hop.from = Rank(any_rank());
      break;
    case 3:
      hop.slots = static_cast<int32_t>(random.Below(2));
      break;
    case 4:
      hop.links.pop_back();
      break;
    case 5:
      hop.back.push_back(hop.back.front());
      break;
    case 6:
      plan.hops.erase(plan.hops.begin() + static_cast<ptrdiff_t>(random.Below(plan.hops.size())));
      break;
    case 7:
      plan.stage_of_depth[random.Below(plan.stage_of_depth.size())] = 0;
      break;
  }
}

// All drawn routings arrive rightly on plans that the verifier lets pass.
TEST(Proof, ChangedPlansAreRefusedOrRight) {
  const std::vector<TestMachine> machines = TestMachines();
  Random random(3);
  int32_t refused = 0, right = 0;
  for (int32_t i = 0; i < 400; ++i) {
    const Topology topology = Read(machines[random.Below(machines.size())]);
    PlanRequest request = RequestOf(topology, 3);
    request.aim = random.Below(2) == 0 ? Aim::kLatency : Aim::kThroughput;
    StatusOr<ExpertPlan> plan = MakeExpertPlan(topology, request);
    ASSERT_TRUE(plan.ok());
    Change(*plan, random);
    if (!VerifyExpertPlan(*plan).empty()) {
      ++refused;
      continue;
    }
    ++right;
    for (uint64_t draw = 0; draw < 20; ++draw) {
      const Routing routing = DrawAny(plan->sizes, random);
      ASSERT_TRUE(CountsAgree(*plan, routing)) << topology.name();
      const Status moved = Replay(*plan, routing, draw);
      ASSERT_TRUE(moved.ok()) << moved.message();
    }
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(right, 5);  // slots of throughput, and parents that stay
}

}  // namespace
}  // namespace xccl::dispatch
