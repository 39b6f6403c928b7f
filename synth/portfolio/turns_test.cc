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

// A broadcast of 400 chunks over one path, in a step each, at twice the bound.
struct LongChain {
  // gpu 0 -10-> switch 1 -40-> gpu 2: the first link is slower than the second, which it holds.
  Topology topology = testing::MakeLine({10, 40}, {1});
  Collective broadcast = [] {
    CollectiveSpec spec;
    spec.kind = CollectiveKind::kBroadcast;
    spec.ranks = AllRanks(2);
    spec.root = Rank(0);
    return Collective::Create(std::move(spec)).value().WithChunks(400);
  }();
  SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 1 << 20};
  Bound bound = BoundOf(request).value();
  Engine engine{.name = "engine", .summary = "", .make = {}};

  LongChain() = default;
  LongChain(const LongChain&) = delete;  // the request points into it

  Made Plan() const {
    Made made{.turn = {},
              .synthesis = {.collective = broadcast, .schedule = {}, .engine = "engine", .note = ""},
              .costs = {}};
    made.turn.engine = &engine;
    made.synthesis.schedule.num_chunks = broadcast.num_chunks();
    for (int32_t c = 0; c < broadcast.num_chunks(); ++c)
      made.synthesis.schedule.Add(ChunkId(c), 1, Rank(0), Rank(1), std::vector{LinkId(0), LinkId(1)},
                                  TransferOp::kCopy, c);
    made.synthesis.simulation.emplace().time_ps = 2 * bound.bound_ps;
    return made;
  }
  std::vector<Turn> Variations(const Made& made) const {
    return VariationsOf(made, request, bound, made.Ps());
  }
};

// A delay that gains nothing was delayed again until the budget was used up: 779 plans on a machine of 3
// GPUs.
TEST(Turns, APlanIsDelayedAgainOnlyWhileThatHelps) {
  const LongChain chain;
  const struct {
    std::string variation;
    double times_before;  // the time of the plan that was delayed ÷ that of its delayed plan
    bool delays;
  } cases[] = {{"", std::numeric_limits<double>::infinity(), true},
               {"delayed", 1.1, true},
               {"delayed", 1, false},
               {"delayed", 0.9, false}};
  for (const auto& c : cases) {
    Made made = chain.Plan();
    made.turn.variation = c.variation;
    made.turn.from_ps = c.times_before * made.Ps();
    const std::vector<Turn> turns = chain.Variations(made);
    EXPECT_EQ(std::ranges::count(turns, "delayed", &Turn::variation), c.delays ? 1 : 0)
        << c.variation << " " << c.times_before;
  }
}

// A plan for a damaged machine names links of the whole machine, which a delay once looked up in the damaged
// one.
TEST(Turns, APlanForADamagedMachineIsVariedByItsEngineAlone) {
  const LongChain chain;
  Made made = chain.Plan();
  EXPECT_FALSE(chain.Variations(made).empty());
  made.synthesis.schedule.missing.slow.emplace_back(LinkId(0), 1'000'000'000);
  EXPECT_TRUE(chain.Variations(made).empty());
}

// A plan in one long chunk had no finer plan, because four times as many chunks are still long, and because
// the promise of a finer plan was its coarser plan's time less the gap of the best plan.
TEST(Turns, APlanInOneLongChunkIsCutAtOnceAndPromisesItsFullestLink) {
  const Topology topology = testing::MakeLine({10, 10}, {});
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kBroadcast;
  spec.ranks = AllRanks(3);
  spec.root = Rank(0);
  const Collective broadcast = Collective::Create(std::move(spec)).value().WithChunks(1);
  const SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 1 << 20};
  const Bound bound = BoundOf(request).value();
  int32_t chunks = 0;
  const Engine engine{.name = "engine",
                      .summary = "",
                      .kinds = {CollectiveKind::kBroadcast},
                      .any_chunks = true,
                      .make = [&](const SynthesisRequest& asked) -> StatusOr<Synthesis> {
                        chunks = *asked.limits.chunks;
                        return LimitReached("asked for its chunks");
                      }};
  Made made{.turn = {},
            .synthesis = {.collective = broadcast, .schedule = {}, .engine = "engine", .note = ""},
            .costs = {}};
  Schedule& schedule = made.synthesis.schedule;
  schedule.num_chunks = 1;
  for (int32_t r : {0, 1})
    schedule.Add(ChunkId(0), 1, Rank(r), Rank(r + 1), std::vector{LinkId(r)}, TransferOp::kCopy, r);
  made.turn.engine = &engine;
  made.synthesis.simulation.emplace().time_ps = 2 * bound.bound_ps;
  made.costs = CostsOf(made.synthesis, request);
  std::vector<Turn> turns = VariationsOf(made, request, bound, made.Ps());
  const auto finer = std::ranges::find(turns, "finer", &Turn::variation);
  ASSERT_TRUE(finer != turns.end());
  EXPECT_DOUBLE_EQ(finer->promised_ps, (1 << 20) * 100.0);  // 1 MiB at 10 GB/s
  EXPECT_FALSE(finer->make(1).ok());
  EXPECT_EQ(chunks, 64);  // of 16 KiB

  made.turn.variation = "finer";
  for (const bool gained : {false, true}) {
    made.turn.from_ps = (gained ? 1.1 : 1) * made.Ps();
    turns = VariationsOf(made, request, bound, made.Ps());
    EXPECT_EQ(std::ranges::count(turns, "finer", &Turn::variation), gained ? 1 : 0);
  }
}

}  // namespace
}  // namespace xccl
