// No plan of an engine is faster than the lower bound of its machine, in either time model. A long run draws
// 10,000 machines.
#include <gtest/gtest.h>

#include <string_view>

#include "base/random.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/engines.h"
#include "tests/testing/check.h"
#include "tests/testing/collectives.h"
#include "tests/testing/topologies.h"

namespace xccl {
namespace {

// All engines but the ones that take long, and the ones that only choose among other engines' plans.
bool IsQuick(const Engine& engine) { return !engine.searches_long && !engine.asks_others; }

TEST(Bound, IsNotBeatenOnRandomMachines) {
  const uint64_t seeds = testing::LongRun() ? 10'000 : 60;
  int64_t plans = 0, met = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random(seed);
    const Topology topology = testing::MakeRandomMachine(seed);
    const auto all = testing::AllCollectives(topology.num_ranks());
    for (int32_t draw = 0; draw < 3; ++draw) {
      const Collective& collective = all[random.Below(all.size())];
      SynthesisRequest request;
      request.topology = &topology;
      request.collective = &collective;
      request.size_bytes = int64_t{1} << (8 + random.Below(22));
      request.model = random.Below(3) == 0 ? TimeModel::kBlocking : TimeModel::kPipelined;
      const auto bound = LowerBound(topology, collective, request.size_bytes, request.model);
      if (!bound.ok()) continue;
      for (const Engine& engine : AllEngines()) {
        if (!IsQuick(engine) || !engine.Serves(request).ok()) continue;
        const auto answer = engine.Synthesize(request);
        if (!answer.ok()) continue;
        if (!VerifySchedule(answer->schedule, answer->collective, topology).empty()) continue;  // no plan
        const SimulateOptions options{.size_bytes = request.size_bytes, .model = request.model};
        const int64_t time_ps = Simulate(answer->schedule, answer->collective, topology, options).time_ps;
        ++plans;
        met += MeetsBound(time_ps, *bound);
        EXPECT_GE(time_ps, bound->bound_ps)
            << topology.name() << ": " << testing::Describe(collective) << " of " << request.size_bytes
            << " by " << engine.name << ", " << ToString(request.model) << ", bound by "
            << ToString(bound->kind);
      }
    }
  }
  RecordProperty("plans", static_cast<int>(plans));
  EXPECT_GT(plans, static_cast<int64_t>(seeds));
  EXPECT_GT(met, plans / 100);
}

}  // namespace
}  // namespace xccl
