#include "synth/portfolio/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "synth/common/test_machines.h"

namespace xccl {
namespace {

// A delay that gains nothing was delayed again until the budget was used up: 779 plans on a machine of 3
// GPUs.
TEST(Turns, APlanIsDelayedAgainOnlyWhileThatHelps) {
  // gpu 0 -10-> switch 1 -40-> gpu 2: the first link is slower than the second, which it holds.
  const Topology topology = testing::MakeLine({10, 40}, {1});
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kBroadcast;
  spec.ranks = AllRanks(2);
  spec.root = Rank(0);
  constexpr int32_t kSteps = 400;
  const Collective broadcast = Collective::Create(std::move(spec)).value().WithChunks(kSteps);
  const SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 1 << 20};
  const Bound bound = BoundOf(request).value();
  Schedule schedule;
  schedule.num_chunks = kSteps;
  for (int32_t c = 0; c < kSteps; ++c)
    schedule.Add(ChunkId(c), 1, Rank(0), Rank(1), std::vector{LinkId(0), LinkId(1)}, TransferOp::kCopy, c);
  const Engine engine{.name = "engine", .summary = "", .make = {}};
  const struct {
    std::string variation;
    double times_before;  // the time of the plan that was delayed ÷ that of its delayed plan
    bool delays;
  } cases[] = {{"", std::numeric_limits<double>::infinity(), true},
               {"delayed", 1.1, true},
               {"delayed", 1, false},
               {"delayed", 0.9, false}};
  for (const auto& c : cases) {
    Made made{.turn = {},
              .synthesis = {.collective = broadcast, .schedule = schedule, .engine = "engine", .note = ""},
              .costs = {}};
    made.turn.engine = &engine;
    made.turn.variation = c.variation;
    made.synthesis.simulation.emplace().time_ps = 2 * bound.bound_ps;
    made.turn.from_ps = c.times_before * made.Ps();
    const std::vector<Turn> turns = VariationsOf(made, request, bound, made.Ps());
    EXPECT_EQ(std::ranges::count(turns, "delayed", &Turn::variation), c.delays ? 1 : 0)
        << c.variation << " " << c.times_before;
  }
}

}  // namespace
}  // namespace xccl
