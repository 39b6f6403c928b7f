// The examples of docs/extending.md, compiled and run: what they add passes the same proofs as the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <numeric>
#include <thread>
#include <vector>

#include "examples/extending/flood_engine.h"
#include "examples/extending/ladder.h"
#include "examples/extending/latest_dependencies.h"
#include "examples/extending/plain_transport.h"
#include "examples/extending/swap_halves.h"
#include "ir/lower/lower.h"
#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"
#include "runtime/executor.h"
#include "synth/engines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

Collective AllgatherOf(int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllgather;
  for (int32_t r = 0; r < ranks; ++r) spec.ranks.push_back(Rank(r));
  return Collective::Create(std::move(spec)).value();
}

LoweredProgram Lowered(const Topology& topology, const Synthesis& made) {
  return LowerFolded(made.schedule, made.collective, topology, {.size_bytes = 1 << 20}).value();
}

TEST(Extending, TheFloodEnginePlansWhatVerifies) {
  for (const char* const machine : {"ring:5", "torus:3x4", "dgx1", "nvswitch:4"}) {
    const Topology topology = LoadTopology(machine).value();
    const Collective collective = AllgatherOf(topology.num_ranks());
    const Engine flood = FloodEngine();
    const SynthesisRequest request{.topology = &topology, .collective = &collective};
    ASSERT_TRUE(flood.Serves(request).ok());
    const Synthesis made = flood.Synthesize(request).value();
    EXPECT_THAT(VerifySchedule(made.schedule, made.collective, topology), testing::IsEmpty()) << machine;
  }
}

TEST(Extending, AnEngineOfTheTablePlansTheCollective) {
  const Topology topology = LoadTopology("ring:6").value();
  const Collective collective = SwapHalves(6).value();
  const Synthesis made =
      FindEngine("greedy").value()->Synthesize({.topology = &topology, .collective = &collective}).value();
  EXPECT_THAT(VerifySchedule(made.schedule, made.collective, topology), testing::IsEmpty());
  EXPECT_EQ(SwapHalves(3).status(), InvalidInput("swap-halves: 3 ranks; expected an even number"));
}

TEST(Extending, TheLadderHasItsCables) {
  const Topology ladder = Ladder(4, {}).value();
  EXPECT_EQ(ladder.num_ranks(), 8);
  EXPECT_EQ(ladder.num_links(), 2 * (4 + 2 * 3));
  EXPECT_EQ(Ladder(0, {}).status(), InvalidInput("ladder: 0 rungs; expected at least 1"));
}

TEST(Extending, ThePassKeepsAProgramRight) {
  const Topology ladder = Ladder(4, {}).value();
  const Collective collective = AllgatherOf(8);
  const Synthesis made = FloodEngine().Synthesize({.topology = &ladder, .collective = &collective}).value();
  LoweredProgram lowered = Lowered(ladder, made);
  Instruction& last = lowered.program.ranks[Rank(0)].threadblocks.back().instructions.back();
  std::vector<Dependency>& all = lowered.program.dependencies;
  // Two more dependencies on the first threadblock; the later one is enough.
  std::vector<Dependency> waits(all.begin() + last.dep_first, all.begin() + last.dep_first + last.dep_count);
  const size_t before = waits.size();
  if (!waits.empty()) waits.push_back(waits.front());
  last.dep_first = static_cast<int32_t>(all.size());
  last.dep_count = static_cast<int32_t>(waits.size());
  all.insert(all.end(), waits.begin(), waits.end());
  KeepLatestDependencies(lowered.program);
  EXPECT_LE(static_cast<size_t>(last.dep_count), before);
  EXPECT_THAT(VerifyProgram(lowered.program, lowered.collective, ladder), testing::IsEmpty());
}

TEST(Extending, TheTransportCarriesAProgram) {
  const Topology ladder = Ladder(3, {}).value();
  const Collective collective = AllgatherOf(6);
  const Synthesis made = FloodEngine().Synthesize({.topology = &ladder, .collective = &collective}).value();
  const LoweredProgram lowered = Lowered(ladder, made);
  const Program* const program = &lowered.program;
  const Wiring wiring = WiringOf({&program, 1}, {.slot_bytes = 4096}).value();
  const CollectiveSizes sizes(lowered.collective, 6 * 40'000);
  const int32_t passes = PassesFor(*program, lowered.collective, sizes, wiring.slot_bytes).value();
  PlainMemory memory(wiring);
  const SharedRegion region = SharedRegion::Create(wiring, Sharing::kThreads).value();
  std::vector<std::vector<int32_t>> outputs(6, std::vector<int32_t>(60'000, -1));
  std::vector<Status> statuses(6);
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < 6; ++r) {
    threads.emplace_back([&, r] {
      std::vector<int32_t> input(10'000);
      std::iota(input.begin(), input.end(), r * 10'000);
      const RankWork work =
          PrepareRank(*program, lowered.collective, sizes, wiring, Rank(r), passes, false, false).value();
      std::vector<std::byte> scratch(static_cast<size_t>(work.scratch_bytes));
      Endpoint::Parts parts;
      parts.region = &region;
      parts.transports.push_back(std::make_unique<PlainTransport>(memory, region));
      Endpoint endpoint(std::move(parts), Rank(r));
      statuses[static_cast<size_t>(r)] = ExecuteRank(
          work, {.type = DataType::kInt32, .op = ReduceOp::kSum, .time_limit = std::chrono::seconds(30)},
          {reinterpret_cast<const std::byte*>(input.data()),
           reinterpret_cast<std::byte*>(outputs[static_cast<size_t>(r)].data()), scratch.data()},
          endpoint);
      // No rank leaves while other ranks may still read memory that it lent to them.
      static_cast<void>(endpoint.Barrier(std::chrono::seconds(30)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(statuses, testing::Each(OkStatus()));
  std::vector<int32_t> expected(60'000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_THAT(outputs, testing::Each(expected));
}

}  // namespace
}  // namespace xccl
