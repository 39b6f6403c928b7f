#include "dispatch/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/files.h"
#include "dispatch/machines_for_tests.h"
#include "dispatch/make_plan.h"

namespace xccl::dispatch {
namespace {

ExpertPlan PlanFor(const std::string& name, Aim aim, int32_t tokens = 4) {
  const std::vector<TestMachine> machines = TestMachines();
  const Topology topology = Read(*std::ranges::find(machines, name, &TestMachine::name));
  PlanRequest request = RequestOf(topology, tokens);
  request.aim = aim;
  StatusOr<ExpertPlan> plan = MakeExpertPlan(topology, request);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return *std::move(plan);
}

struct Mutation {
  std::string rule;
  Aim aim;
  std::function<void(ExpertPlan&)> change;
  std::string text;
};

// One mutation of a valid plan for every rule.
TEST(VerifyExpertPlan, RefusesMutatedPlansByTheirRule) {
  const std::vector<Mutation> mutations = {
      {"D1", Aim::kLatency, [](ExpertPlan& plan) { plan.sizes.experts = 13; },
       "experts: 13 on 12 ranks; expected a multiple of 12; hint: --experts=24"},
      {"D1", Aim::kLatency, [](ExpertPlan& plan) { plan.rows_per_message = 0; },
       "0 rows in a message; expected at least 1"},
      {"D2", Aim::kLatency, [](ExpertPlan& plan) { plan.parents[0] = 1; },
       "lane 0, home 0: the home hangs on rank 1; expected on itself"},
      {"D2", Aim::kLatency,
       [](ExpertPlan& plan) {
         plan.parents[1] = 2;
         plan.parents[2] = 1;
       },
       "lane 0, home 0: rank 1 hangs on a ring of ranks; expected a way to the home"},
      {"D3", Aim::kLatency, [](ExpertPlan& plan) { plan.hops.erase(plan.hops.begin()); },
       "lane 0, stage 0, rank 0 to rank 1: no hop; expected one for the branch"},
      {"D3", Aim::kLatency, [](ExpertPlan& plan) { plan.hops.push_back(plan.hops[0]); },
       "lane 0, stage 0, rank 0 to rank 1: two hops; expected one"},
      {"D3", Aim::kLatency,
       [](ExpertPlan& plan) {
         plan.hops.push_back(plan.hops[0]);
         plan.hops.back().stage = 7;
       },
       "lane 0, stage 7, rank 0 to rank 1: no such lane, stage or pair of ranks; expected those of a tree"},
      {"D4", Aim::kLatency, [](ExpertPlan& plan) { plan.hops[0].links.pop_back(); },
       "lane 0, stage 0, rank 0 to rank 1: its links do not join them; expected a path through no other GPU"},
      {"D4", Aim::kLatency, [](ExpertPlan& plan) { std::swap(plan.hops[0].back, plan.hops[1].back); },
       "lane 0, stage 0, rank 0 to rank 1: its links back do not join them; expected a path through no other "
       "GPU"},
      {"D5", Aim::kLatency, [](ExpertPlan& plan) { plan.hops[0].slots = 3; },
       "lane 0, stage 0, rank 0 to rank 1: 3 slots of 1 rows for up to 4 rows; expected at least 4 slots"},
      {"D5", Aim::kThroughput, [](ExpertPlan& plan) { plan.hops[0].slots = 0; },
       "lane 0, stage 0, rank 0 to rank 1: 0 slots of 1024 rows for up to 4 rows; expected at least 1 slots"},
  };
  std::set<std::string> rules = {"D6", "D7"};  // tests of their own
  for (const Mutation& mutation : mutations) {
    ExpertPlan plan = PlanFor("rails", mutation.aim);
    ASSERT_TRUE(VerifyExpertPlan(plan).empty());
    mutation.change(plan);
    const std::vector<Fault> faults = VerifyExpertPlan(plan);
    ASSERT_FALSE(faults.empty()) << mutation.text;
    EXPECT_EQ(faults[0].rule, mutation.rule);
    EXPECT_EQ(faults[0].text, mutation.text);
    rules.insert(mutation.rule);
  }
  for (const Rule& rule : kRules) EXPECT_TRUE(rules.contains(std::string(rule.id))) << rule.id;
}

// Rows of different stages that share slots wait for one another in a ring.
TEST(VerifyExpertPlan, RefusesStagesThatShareSlots) {
  ExpertPlan plan = PlanFor("ring", Aim::kThroughput);
  std::ranges::fill(plan.stage_of_depth, 0);
  std::set<std::tuple<int32_t, int32_t, int32_t>> known;
  std::vector<Hop> hops;
  for (Hop hop : plan.hops) {
    hop.stage = 0;
    if (known.emplace(hop.lane, hop.from.value, hop.to.value).second) hops.push_back(hop);
  }
  plan.hops = hops;
  const std::vector<Fault> faults = VerifyExpertPlan(plan);
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults[0].rule, "D6");
  EXPECT_NE(faults[0].text.find("its slots wait for a ring of hops; expected stages that part"),
            std::string::npos);
}

TEST(VerifyExpertPlan, RefusesEntriesByNeedThroughAThirdDomain) {
  ExpertPlan plan = PlanFor("ring-of-hosts", Aim::kThroughput);
  plan.entry = Entry::kNeeded;
  const std::vector<Fault> faults = VerifyExpertPlan(plan);
  ASSERT_FALSE(faults.empty());
  EXPECT_TRUE(std::ranges::any_of(faults, [](const Fault& fault) { return fault.rule == "D7"; }));
}

// With nested blocks a row of the home's own domain goes by need, too, so no rank beside the home may send it
// on.
TEST(VerifyExpertPlan, RefusesNestedEntriesThatTheHomeDoesNotSend) {
  ExpertPlan plan = PlanFor("pcie", Aim::kThroughput);
  plan.entry = Entry::kNested;
  plan.route = "nested";
  for (int32_t rank = 4; rank < 8; ++rank) plan.parents[rank] = rank == 4 ? 1 : 4;
  const std::vector<Fault> faults = VerifyExpertPlan(plan);
  const auto found = std::ranges::find(faults, "D7", &Fault::rule);
  ASSERT_NE(found, faults.end());
  EXPECT_EQ(found->text, "lane 0, home 0: domain 1 is entered from rank 1; expected from the home");
}

TEST(ReadExpertPlan, SaysTheFirstFaultWithItsRule) {
  ExpertPlan plan = PlanFor("rails", Aim::kLatency);
  plan.parents[0] = 1;
  const std::string path = testing::TempDir() + "/wrong.plan.json";
  ASSERT_TRUE(WriteExpertPlan(plan, path).ok());
  EXPECT_EQ(ReadExpertPlan(path).status().message(),
            path + ": [D2] lane 0, home 0: the home hangs on rank 1; expected on itself");
}

// All routings of one token a rank, of at most two of four experts, on four ranks: 11^4.
void ReplayAll(const ExpertPlan& plan) {
  std::vector<std::pair<int32_t, int32_t>> choices;
  for (int32_t a = -1; a < 4; ++a)
    for (int32_t b = a; b < 4; ++b)
      if (a != b || a == -1) choices.emplace_back(a, b);
  ASSERT_EQ(choices.size(), 11U);
  Routing routing{.top_k = 2, .first_token = {0, 1, 2, 3, 4}, .experts = std::vector<int32_t>(8)};
  for (int32_t code = 0; code < 11 * 11 * 11 * 11; ++code) {
    int32_t left = code;
    for (int32_t rank = 0; rank < 4; ++rank, left /= 11)
      std::tie(routing.experts[2 * rank], routing.experts[2 * rank + 1]) = choices[left % 11];
    const Status status = Replay(plan, routing, static_cast<uint64_t>(code));
    ASSERT_TRUE(status.ok()) << status.message() << " in routing " << code;
  }
}

TEST(Replay, EveryRoutingOfFourRanksArrives) {
  const Topology topology = Read(TestMachines()[2]);  // two hosts of two GPUs with one NIC
  ASSERT_EQ(topology.num_ranks(), 4);
  PlanRequest request = RequestOf(topology, 1);
  request.sizes.experts = 4;
  for (const Aim aim : {Aim::kLatency, Aim::kThroughput})
    for (const Sums sums : {Sums::kHome, Sums::kOnWay}) {
      request.aim = aim;
      StatusOr<ExpertPlan> plan = MakeExpertPlan(topology, request);
      ASSERT_TRUE(plan.ok());
      plan->sums = sums;
      for (Hop& hop : plan->hops) hop.slots = aim == Aim::kLatency ? 8 : 1;
      ASSERT_TRUE(VerifyExpertPlan(*plan).empty());
      ReplayAll(*plan);
    }
}

// Labels steer no row, and are shown to people.
TEST(ReadExpertPlan, ChecksTheLabelsOfAnEditedPlan) {
  ExpertPlan plan = PlanFor("rails", Aim::kThroughput);
  const auto error = [](const ExpertPlan& edited) {
    return ParseExpertPlanUnverified(ExpertPlanText(edited), "f").status().message();
  };
  EXPECT_EQ(error(plan), "");
  std::swap(plan.domains[0], plan.domains.back());
  EXPECT_EQ(error(plan), "f: domains: rank 0 in domain 2; expected 0, by the links of the machine");
  std::swap(plan.domains[0], plan.domains.back());
  for (const std::string route : {"", "\033[2Jrail", "a-name-that-no-way-of-making-trees-has"}) {
    plan.route = route;
    EXPECT_TRUE(error(plan).starts_with("f: route: '")) << error(plan);
  }
}

// One slot a hop and messages of one row: whatever waits in a ring would stop.
TEST(Replay, DrawnRoutingsArriveThroughTheFewestSlots) {
  Random random(5);
  for (const TestMachine& machine : TestMachines()) {
    const Topology topology = Read(machine);
    PlanRequest request = RequestOf(topology, 6, 3);
    for (const Sums sums : {Sums::kHome, Sums::kOnWay}) {
      StatusOr<ExpertPlan> plan = MakeExpertPlan(topology, request);
      ASSERT_TRUE(plan.ok());
      plan->sums = sums;
      plan->rows_per_message = 1;
      for (Hop& hop : plan->hops) hop.slots = 1;
      ASSERT_TRUE(VerifyExpertPlan(*plan).empty());
      for (uint64_t draw = 0; draw < 20; ++draw) {
        const RoutingSource source{.kind = RoutingSource::Kind::kZipf, .exponent = 1};
        const Status status = Replay(*plan, DrawRouting(source, plan->sizes, random), draw);
        ASSERT_TRUE(status.ok()) << machine.name << ": " << status.message();
      }
    }
  }
}

TEST(Replay, FindsAWaitWithoutEnd) {
  ExpertPlan plan = PlanFor("ring", Aim::kThroughput, 40);
  std::ranges::fill(plan.stage_of_depth, 0);
  plan.rows_per_message = 1;
  std::set<std::tuple<int32_t, int32_t, int32_t>> known;
  std::vector<Hop> hops;
  for (Hop hop : plan.hops) {
    hop.stage = 0;
    hop.slots = 1;
    if (known.emplace(hop.lane, hop.from.value, hop.to.value).second) hops.push_back(hop);
  }
  plan.hops = hops;
  Random random(2);
  bool stopped = false;
  for (uint64_t draw = 0; draw < 50 && !stopped; ++draw)
    stopped =
        Replay(plan, DrawRouting({}, plan.sizes, random), draw).message().find("[D6]") != std::string::npos;
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace xccl::dispatch
