#include "dispatch/make_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/files.h"
#include "dispatch/bound.h"
#include "dispatch/domains.h"
#include "dispatch/machines_for_tests.h"
#include "dispatch/predict.h"
#include "dispatch/verify.h"

namespace xccl::dispatch {
namespace {

Topology Machine(const std::string& name) {
  const std::vector<TestMachine> machines = TestMachines();
  return Read(*std::ranges::find(machines, name, &TestMachine::name));
}

ExpertPlan Planned(const Topology& topology, const PlanRequest& request) {
  StatusOr<ExpertPlan> plan = MakeExpertPlan(topology, request);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return *std::move(plan);
}

class EveryMachine : public ::testing::TestWithParam<TestMachine> {};
INSTANTIATE_TEST_SUITE_P(Machines, EveryMachine, ::testing::ValuesIn(TestMachines()), TestName);

TEST_P(EveryMachine, PlansAreProvedAndNoFasterThanTheBound) {
  const Topology topology = Read(GetParam());
  for (const Call call : {Call::kDispatch, Call::kCombine})
    for (const Aim aim : {Aim::kLatency, Aim::kThroughput}) {
      PlanRequest request = RequestOf(topology, aim == Aim::kLatency ? 4 : 300);
      request.call = call;
      request.aim = aim;
      const ExpertPlan plan = Planned(topology, request);
      EXPECT_TRUE(VerifyExpertPlan(plan).empty()) << plan.route;
      const auto evaluation = Evaluate(plan, *Prepare(topology, request), 5);
      ASSERT_TRUE(evaluation.ok());
      for (const DrawTimes& draw : evaluation->draws) {
        EXPECT_GE(draw.plan_ps, draw.bound_ps) << plan.route;
        EXPECT_GE(draw.deepep_ps, draw.bound_ps);
        EXPECT_GE(draw.pairwise_ps, draw.bound_ps);
        EXPECT_GE(draw.padded_ps, draw.bound_ps);
      }
    }
}

TEST_P(EveryMachine, FilesReadBackToTheSamePlan) {
  const Topology topology = Read(GetParam());
  const ExpertPlan plan = Planned(topology, RequestOf(topology, 10));
  const std::string path = testing::TempDir() + "/expert.plan.json";
  ASSERT_TRUE(WriteExpertPlan(plan, path).ok());
  const StatusOr<ExpertPlan> read = ReadExpertPlan(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->topology, plan.topology);
  EXPECT_EQ(read->sizes, plan.sizes);
  EXPECT_EQ(read->parents, plan.parents);
  EXPECT_EQ(read->hops, plan.hops);
  EXPECT_EQ(read->domains, plan.domains);
  EXPECT_EQ(read->stage_of_depth, plan.stage_of_depth);
  EXPECT_EQ(std::tuple(read->aim, read->entry, read->sums, read->lanes, read->rows_per_message, read->route),
            std::tuple(plan.aim, plan.entry, plan.sums, plan.lanes, plan.rows_per_message, plan.route));
}

TEST(MakeExpertPlan, RowsCrossTheFabricOncePerHost) {
  const Topology topology = Machine("rails");
  const ExpertPlan plan = Planned(topology, RequestOf(topology, 300, 8));
  const HopIndex index(plan);
  Random random(1);
  const Routing routing = DrawRouting({}, plan.sizes, random);
  const std::vector<int64_t> rows = RowsOfHops(plan, index, NeedsOf(routing, plan.sizes), Call::kDispatch);
  int64_t crossing = 0, expected = 0;
  for (size_t h = 0; h < rows.size(); ++h)
    if (plan.domains[plan.hops[h].from.index()] != plan.domains[plan.hops[h].to.index()]) crossing += rows[h];
  for (int64_t t = 0; t < routing.first_token.back(); ++t) {
    std::set<int32_t> hosts;
    for (const int32_t expert : routing.ExpertsOf(t))
      hosts.insert(plan.domains[plan.sizes.RankOfExpert(expert)]);
    hosts.erase(static_cast<int32_t>(t / plan.sizes.max_tokens / 4));
    expected += static_cast<int64_t>(hosts.size());
  }
  EXPECT_EQ(crossing, expected);
}

// Two pairs of GPUs on PCIe switches: a row for both ranks of a pair crosses the pair's link once.
TEST(MakeExpertPlan, NestedRowsEnterEachPairOfASwitchOnce) {
  const Topology topology = Machine("pcie");
  const auto ground = Prepare(topology, RequestOf(topology, 300, 8));
  ASSERT_TRUE(ground.ok());
  const auto routes = MakeAllRoutes(*ground);
  ASSERT_TRUE(routes.ok());
  const auto nested = std::ranges::find(routes->plans, Entry::kNested, &ExpertPlan::entry);
  ASSERT_NE(nested, routes->plans.end());
  EXPECT_TRUE(VerifyExpertPlan(*nested).empty());
  BranchFinder finder(*nested);
  // Both pairs of the other host, and the other pair of the home's own.
  const std::vector<int32_t> needs = {2, 3, 4, 5, 6, 7};
  std::map<int32_t, int32_t> from;
  for (const Branch& branch : finder.Find(0, 1, needs)) from[branch.to] = branch.from;
  EXPECT_EQ(from, (std::map<int32_t, int32_t>{{3, 1}, {2, 3}, {5, 1}, {4, 5}, {7, 5}, {6, 7}}));
}

// One GPU's expert is wanted by all: the rows of its pair cross the switch's link twice, unless they are
// nested.
TEST(MakeExpertPlan, HotExpertsUnderASwitchMakeNestedRoutes) {
  const Topology topology = Machine("pcie");
  PlanRequest request = RequestOf(topology, 4000, 4);
  request.sizes.experts = 8;
  request.sizes.row_bytes = 7392;
  Routing routing{.top_k = 4};
  for (int32_t rank = 0; rank < 8; ++rank) {
    for (int32_t t = 0; t < 4000; ++t)
      for (const int32_t expert : {2, 3, t % 2, 4 + t % 4}) routing.experts.push_back(expert);
    routing.first_token.push_back(routing.first_token.back() + 4000);
  }
  request.routing = {.kind = RoutingSource::Kind::kFile, .of_file = routing};
  EXPECT_EQ(Planned(topology, request).route, "nested");
}

TEST(MakeExpertPlan, StandsWithOneDrawWhenTheTimeIsOver) {
  const Topology topology = Machine("rails");
  const PlanRequest request = RequestOf(topology, 1 << 16, 8);
  const auto ground = Prepare(topology, request);
  ASSERT_TRUE(ground.ok());
  const Deadline over(0.0);
  const auto plan = MakeExpertPlan(*ground, over);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_TRUE(VerifyExpertPlan(*plan).empty());
  const auto evaluation = Evaluate(*plan, *ground, 100, over);
  ASSERT_TRUE(evaluation.ok());
  EXPECT_EQ(evaluation->draws.size(), 1U);
  EXPECT_EQ(evaluation->copies, (1 << 16) / 64);  // 64 tokens of a rank are drawn
  // Without a limit all tokens are.
  const auto whole = Evaluate(*plan, *ground, 2);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->draws.size(), 2U);
  EXPECT_EQ(whole->copies, 1);
}

TEST(Prepare, RefusesPathsThatTakeLongerThanThereIs) {
  const Topology topology = Machine("rails");
  const Status status = Prepare(topology, RequestOf(topology, 4), Deadline(0.0)).status();
  EXPECT_EQ(status.code(), StatusCode::kLimit);
  const std::string text(status.message());
  EXPECT_TRUE(text.starts_with("m: paths between 12 ranks take about 0.")) << text;
  EXPECT_NE(text.find(" s; expected at most --time-limit=0s; hint: --time-limit="), std::string::npos)
      << text;
  Interrupt interrupt;
  interrupt.Set();
  EXPECT_EQ(Prepare(topology, RequestOf(topology, 4), Deadline().With(interrupt)).status().message(),
            "m: interrupted before a plan was made");
}

// Each drawn token stands for three: as if it came three times.
TEST(DrawNeeds, CopiesCountAsTokens) {
  const Topology topology = Machine("rails");
  const PlanRequest request = RequestOf(topology, 192, 2);
  const ExpertPlan plan = Planned(topology, request);
  Random random(3);
  const Needs few = DrawNeeds(request, 0, random);
  EXPECT_EQ(few.copies, 3);
  EXPECT_EQ(few.first_token.back(), 12 * 64);
  Needs all;
  for (int32_t home = 0; home < 12; ++home) {
    for (int32_t copy = 0; copy < 3; ++copy)
      for (int64_t t = few.first_token[home]; t < few.first_token[home + 1]; ++t) {
        const auto ranks = few.Of(t);
        all.ranks.insert(all.ranks.end(), ranks.begin(), ranks.end());
        all.first_rank.push_back(std::ssize(all.ranks));
      }
    all.first_token.push_back(std::ssize(all.first_rank) - 1);
  }
  const HopIndex index(plan);
  for (const Call call : {Call::kDispatch, Call::kCombine}) {
    EXPECT_EQ(RowsOfHops(plan, index, few, call), RowsOfHops(plan, index, all, call));
    const Bound bound(topology, FindDomains(topology), request.sizes, call);
    EXPECT_EQ(bound.TimePs(few), bound.TimePs(all));
  }
  EXPECT_EQ(RowsOfPairs(few, 12), RowsOfPairs(all, 12));
}

// One rank has all tokens: its own NIC alone would carry everything.
TEST(MakeExpertPlan, SpreadsOneRanksRowsOverAllNicsOfItsHost) {
  const Topology topology = Machine("rails");
  PlanRequest request = RequestOf(topology, 4000, 8);
  Random random(1);
  Routing routing = DrawRouting({}, request.sizes, random);
  for (size_t r = 2; r < routing.first_token.size(); ++r) routing.first_token[r] = routing.first_token[1];
  routing.experts.resize(routing.first_token.back() * routing.top_k);
  request.routing = {.kind = RoutingSource::Kind::kFile, .of_file = routing};
  const ExpertPlan plan = Planned(topology, request);
  EXPECT_EQ(plan.route, "spread");
  EXPECT_EQ(plan.lanes, 4);
  const auto evaluation = Evaluate(plan, *Prepare(topology, request), 1);
  EXPECT_LT(2 * evaluation->draws[0].plan_ps, evaluation->draws[0].deepep_ps);
}

TEST(MakeExpertPlan, PassesRowsThroughAnotherHostWhereNoLinkJoinsTwo) {
  const Topology topology = Machine("ring-of-hosts");
  const ExpertPlan plan = Planned(topology, RequestOf(topology, 50));
  // Rank 0 is on the first host, rank 4 on the third.
  int32_t at = 4, domains = 0;
  for (; at != 0; at = plan.TreeOf(0, 0)[at])
    domains += plan.domains[at] != plan.domains[plan.TreeOf(0, 0)[at]];
  EXPECT_EQ(domains, 2);
}

// Slots are given back over the way back, so the short way from rank 0 to rank 2 is of no use.
TEST(MakeExpertPlan, LinksOneWayAloneJoinNoTwo) {
  const auto topology = ReadNativeXml(
      "<topology name='one-way'><gpu count='3'/><link from='0' to='1' bandwidth='1GB/s' latency='1us'/>"
      "<link from='1' to='2' bandwidth='1GB/s' latency='1us'/>"
      "<link from='0' to='2' duplex='false' bandwidth='9GB/s' latency='1us'/></topology>",
      "t");
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  PlanRequest request;
  request.sizes = {.ranks = 3, .experts = 6, .top_k = 2, .max_tokens = 16, .row_bytes = 64};
  const ExpertPlan plan = Planned(*topology, request);
  EXPECT_EQ(plan.TreeOf(0, 0)[2], 1);
}

TEST(MakeExpertPlan, RefusesTimesOfDaysAndTooManyRanks) {
  const auto slow = ReadNativeXml(
      "<topology name='slow'><gpu count='2'/><link from='0' to='1' bandwidth='1B/s' "
      "latency='900ms'/></topology>",
      "t");
  ASSERT_TRUE(slow.ok()) << slow.status().message();
  PlanRequest request;
  request.sizes = {.ranks = 2, .experts = 2, .top_k = 2, .max_tokens = 4096, .row_bytes = 7392};
  const std::string text(Evaluate(Planned(*slow, request), *Prepare(*slow, request), 1).status().message());
  EXPECT_TRUE(text.ends_with("days at least; times of up to 1 day are supported")) << text;
  EXPECT_EQ(
      CheckSizes({.ranks = 4097, .experts = 4097, .top_k = 1, .max_tokens = 1, .row_bytes = 16}).message(),
      "4097 ranks; expert plans are for at most 4096");
}

TEST(MakeExpertPlan, EqualRequestsGiveEqualPlans) {
  const Topology topology = Machine("pcie");
  const PlanRequest request = RequestOf(topology, 100);
  const ExpertPlan one = Planned(topology, request), two = Planned(topology, request);
  EXPECT_EQ(one.parents, two.parents);
  EXPECT_EQ(one.hops, two.hops);
}

TEST(MakeExpertPlan, RefusesWhatCannotReach) {
  const auto topology = ReadNativeXml(
      "<topology name='parted'><gpu count='2'/><link from='0' to='1' duplex='false' bandwidth='1GB/s' "
      "latency='0ns'/></topology>",
      "t");
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  const Status status = MakeExpertPlan(*topology, RequestOf(*topology, 1)).status();
  EXPECT_EQ(status.code(), StatusCode::kInfeasible);
  EXPECT_EQ(status.message(),
            "parted: rank 0 is not joined with all ranks of its domain; expected a path to each and back");
}

// facts/dispatch.md, 6: uniform top-8 of 256 on 8 GPUs a host, 50 GB/s a GPU, 4,096 tokens.
TEST(Bound, IsThatOfThePublishedExample) {
  const TestMachine machine{
      "eight", "<topology name='m'><cluster hosts='2'>" + NvlinkHost(8, 8) +
                   "<fabric type='rails' bandwidth='50GB/s' latency='0ns'/></cluster></topology>"};
  const Topology topology = Read(machine);
  const Sizes sizes{.ranks = 16, .experts = 256, .top_k = 8, .max_tokens = 4096, .row_bytes = 7392};
  Random random(1);
  const Bound bound(topology, FindDomains(topology), sizes, Call::kDispatch);
  EXPECT_NEAR(static_cast<double>(bound.TimePs(NeedsOf(DrawRouting({}, sizes, random), sizes))) / 1e6, 603,
              6);
}

TEST(Bound, IsZeroWhereNothingMoves) {
  const Topology topology = Machine("rails");
  const PlanRequest request = RequestOf(topology, 3);
  const Needs needs = NeedsOf({.top_k = 2, .first_token = std::vector<int64_t>(13)}, request.sizes);
  EXPECT_EQ(Bound(topology, FindDomains(topology), request.sizes, Call::kDispatch).TimePs(needs), 0);
  const ExpertPlan plan = Planned(topology, request);
  Predictor predictor(plan, Call::kDispatch);
  EXPECT_EQ(predictor.TimePs(RowsOfHops(plan, HopIndex(plan), needs, Call::kDispatch)), 0);
}

TEST(Domains, AreWhatIsJoinedWithoutNics) {
  EXPECT_EQ(FindDomains(Machine("rails")).size(), 3);
  EXPECT_EQ(FindDomains(Machine("pcie")).size(), 2);
  EXPECT_EQ(FindDomains(Machine("torus")).size(), 1);
  // Trays of one NVLink switch, which no host owns.
  const auto trays = ReadNativeXml(
      "<topology name='m'><host name='a'><gpu count='2'/></host><host name='b'><gpu count='2'/></host>"
      "<switch id='nvswitch'/><link from='a/gpu:*' to='nvswitch' bandwidth='900GB/s' latency='500ns'/>"
      "<link from='b/gpu:*' to='nvswitch' bandwidth='900GB/s' latency='500ns'/></topology>",
      "t");
  ASSERT_TRUE(trays.ok()) << trays.status().message();
  EXPECT_EQ(FindDomains(*trays).size(), 1);
}

}  // namespace
}  // namespace xccl::dispatch
