#include "dispatch/simulate.h"

#include <gtest/gtest.h>

#include "dispatch/bound.h"
#include "dispatch/domains.h"
#include "dispatch/machines_for_tests.h"
#include "dispatch/make_plan.h"
#include "dispatch/predict.h"

namespace xccl::dispatch {
namespace {

// The prediction is near the simulation, which no bound exceeds.
TEST(SimulateCall, IsNearThePrediction) {
  for (const TestMachine& machine : TestMachines()) {
    const Topology topology = Read(machine);
    for (const Call call : {Call::kDispatch, Call::kCombine})
      for (const int32_t tokens : {16, 600}) {
        PlanRequest request = RequestOf(topology, tokens, 3);
        request.sizes.row_bytes = 7392;
        request.call = call;
        request.aim = tokens > 100 ? Aim::kThroughput : Aim::kLatency;
        StatusOr<ExpertPlan> plan = MakeExpertPlan(topology, request);
        ASSERT_TRUE(plan.ok());
        const Bound bound(topology, FindDomains(topology), plan->sizes, call);
        Predictor predictor(*plan, call);
        Random random(9);
        for (const Sums sums : {Sums::kHome, Sums::kOnWay}) {
          plan->sums = sums;
          const Needs needs = NeedsOf(DrawRouting({}, plan->sizes, random), plan->sizes);
          const auto predicted =
              static_cast<double>(predictor.TimePs(RowsOfHops(*plan, HopIndex(*plan), needs, call)));
          const auto simulated = static_cast<double>(SimulateCall(*plan, needs, call));
          const auto least = static_cast<double>(bound.TimePs(needs));
          EXPECT_GE(simulated, least) << machine.name;
          EXPECT_LT(simulated, 1.25 * predicted) << machine.name << " " << plan->route << " " << tokens << " "
                                                 << ToString(call) << " " << ToString(sums);
          EXPECT_GT(simulated, 0.65 * predicted) << machine.name << " " << plan->route << " " << tokens << " "
                                                 << ToString(call) << " " << ToString(sums);
        }
      }
  }
}

// One row over one link: its bytes with the header, and the latency.
TEST(SimulateCall, OneRowTakesItsLinksTime) {
  const Topology topology = Read({"two",
                                  "<topology name='m'><full-mesh ranks='2' bandwidth='1GB/s' latency='1us'/>"
                                  "</topology>"});
  PlanRequest request;
  request.sizes = {.ranks = 2, .experts = 2, .top_k = 1, .max_tokens = 1, .row_bytes = 976};
  const StatusOr<ExpertPlan> plan = MakeExpertPlan(topology, request);
  ASSERT_TRUE(plan.ok());
  const Needs needs = NeedsOf({.top_k = 1, .first_token = {0, 1, 1}, .experts = {1}}, plan->sizes);
  // 976 bytes, 16 of header: 992 ns.
  EXPECT_EQ(SimulateCall(*plan, needs, Call::kDispatch), 1'992'000);
  EXPECT_EQ(SimulateCall(*plan, needs, Call::kCombine), 1'992'000);
  Predictor predictor(*plan, Call::kDispatch);
  EXPECT_EQ(predictor.TimePs(RowsOfHops(*plan, HopIndex(*plan), needs, Call::kDispatch)), 1'992'000);
}

}  // namespace
}  // namespace xccl::dispatch
