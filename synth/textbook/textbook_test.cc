#include "synth/textbook/textbook.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/analysis/bitwise_same.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/synthesizer.h"
#include "synth/common/test_machines.h"
#include "synth/textbook/engines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

using testing::Machine;
using testing::Machines;
using testing::MemberLists;
using testing::SpecOf;

// Every engine on every machine for every collective that it serves either verifies or says why not.
TEST(Textbook, EveryPlanVerifies) {
  int32_t made = 0;
  for (const Machine& machine : Machines()) {
    RankGraphs graphs(machine.topology);
    for (const TextbookEngine& engine : TextbookEngines()) {
      for (CollectiveKind kind : engine.kinds) {
        for (const std::vector<Rank>& ranks : MemberLists(machine.topology.num_ranks())) {
          const Collective collective = *Collective::Create(SpecOf(kind, ranks));
          SynthesisRequest request;
          request.topology = &machine.topology;
          request.collective = &collective;
          for (std::optional<int32_t> chunks : {std::optional<int32_t>(), std::optional(3)}) {
            if (chunks && ranks.size() > 8) continue;
            request.limits.chunks = chunks;
            const std::string where =
                fmt::format("{}, {}, {} on {} ranks, chunks {}", machine.name, engine.name, collective.name(),
                            ranks.size(), chunks.value_or(0));
            const StatusOr<PlacedEngine> placed = PlacedEngine::Place(engine, graphs, request);
            if (!placed.ok()) {
              EXPECT_EQ(placed.status().code(), StatusCode::kInvalidInput) << where;
              continue;
            }
            EXPECT_GE(placed->EstimatePs(), 0) << where;
            const StatusOr<Synthesis> synthesis = placed->Make();
            if (!synthesis.ok()) continue;
            ++made;
            const std::vector<Violation> violations =
                VerifySchedule(synthesis->schedule, synthesis->collective, machine.topology);
            if (!violations.empty()) {
              ADD_FAILURE() << where << ": " << ToString(violations[0]);
              continue;
            }
            EXPECT_TRUE(IsBitwiseSame(synthesis->schedule, synthesis->collective, machine.topology)) << where;
          }
        }
      }
    }
  }
  EXPECT_GT(made, 500);
}

// Cables of unequal directions: whole vectors are exchanged faster than gathered on the machine turned round
// alone, and an exchange cannot be played backwards.
TEST(Textbook, AnAllreduceRunsNoExchangeBackwards) {
  TopologySpec spec = testing::MakeFullMesh(3).spec();
  for (Link& link : spec.links)
    if (link.from == NodeId(1) && link.to == NodeId(0)) link.bandwidth_bytes_per_s /= 10;
  const Topology topology = *Topology::Create(std::move(spec));
  const Collective collective = *Collective::Create(SpecOf(CollectiveKind::kAllreduce, AllRanks(3)));
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  request.allow_divergent = true;
  RankGraphs graphs(topology);
  for (const TextbookEngine& engine : TextbookEngines()) {
    const StatusOr<PlacedEngine> placed = PlacedEngine::Place(engine, graphs, request);
    if (!placed.ok()) continue;
    const StatusOr<Synthesis> made = placed->Make();
    ASSERT_TRUE(made.ok()) << engine.name << ": " << made.status().message();
    EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)).message(), "")
        << engine.name;
  }
}

const TextbookEngine& EngineNamed(std::string_view name) {
  return *std::ranges::find(TextbookEngines(), name, &TextbookEngine::name);
}

SynthesisRequest RequestFor(const Topology& topology, const Collective& collective) {
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  return request;
}

// The moves of an allgather in which each rank's block is one chunk, and the recipe that makes them.
std::pair<Moves, Recipe> AllgatherOf(std::string_view name, const RankGraph& graph,
                                     const Topology& topology) {
  const int32_t n = topology.num_ranks();
  const Collective collective = *Collective::Create(SpecOf(CollectiveKind::kAllgather, AllRanks(n)));
  const Recipe recipe = *EngineNamed(name).place(graph, RequestFor(topology, collective));
  Moves moves;
  recipe.allgather(EqualBlocks({0, n}, n), moves);
  return {std::move(moves), recipe};
}

TEST(Textbook, TheCostOfDirectIsThatOfItsMoves) {
  for (const char* name : {"nvswitch:5", "full-mesh:4", "fat-tree:k=4", "rail-2", "leaf-spine:4x2x4"}) {
    const Topology topology = *LoadTopology(name);
    const RankGraph graph(topology);
    const auto [moves, recipe] = AllgatherOf("direct", graph, topology);
    ASSERT_TRUE(recipe.cost) << name;
    const Cost measured = MeasureMoves(moves, graph, 1.0 / topology.num_ranks());
    EXPECT_DOUBLE_EQ(recipe.cost->fixed_ps, measured.fixed_ps) << name;
    EXPECT_NEAR(recipe.cost->ps_per_byte / measured.ps_per_byte, 1, 1e-9) << name;
  }
}

// An estimate of a million moves on a thousand ranks took longer than other engines' plans.
TEST(Textbook, SomeStepsOfManyMovesStandForAll) {
  const Topology topology = *LoadTopology("fat-tree:k=12");
  const RankGraph graph(topology);
  const auto [moves, recipe] = AllgatherOf("pairwise", graph, topology);
  ASSERT_FALSE(recipe.cost);
  const double fraction = 1.0 / topology.num_ranks();
  std::vector<Moves> of_step(static_cast<size_t>(topology.num_ranks()) - 1);
  for (const Move& move : moves.items()) of_step[static_cast<size_t>(move.step)].Add(move);
  Cost exact;
  for (const Moves& step : of_step) {
    const Cost cost = MeasureMoves(step, graph, fraction);
    exact.fixed_ps += cost.fixed_ps;
    exact.ps_per_byte += cost.ps_per_byte;
  }
  const Cost measured = MeasureMoves(moves, graph, fraction);
  EXPECT_NE(measured.ps_per_byte, exact.ps_per_byte);
  EXPECT_NEAR(measured.fixed_ps / exact.fixed_ps, 1, 0.05);
  EXPECT_NEAR(measured.ps_per_byte / exact.ps_per_byte, 1, 0.05);
}

// A broadcast along one-way links is possible, so that an engine whose moves go back says that it does not
// serve it.
TEST(Textbook, AMoveWithoutAPathIsRefused) {
  TopologySpec spec = testing::MakeRing(5).spec();
  std::erase_if(spec.links, [](const Link& l) { return l.to != NodeId(l.from.value + 1); });
  const Topology one_way = Topology::Create(std::move(spec)).value();
  const Collective broadcast = Collective::Create(SpecOf(CollectiveKind::kBroadcast, AllRanks(5))).value();
  const SynthesisRequest request{.topology = &one_way, .collective = &broadcast};
  int refused = 0;
  for (const TextbookEngine& engine : TextbookEngines()) {
    const StatusOr<Synthesis> made = RowOf(engine).Synthesize(request);
    if (made.ok()) continue;
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidInput) << made.status().message();
    refused +=
        made.status().message().find("; expected one; hint: --engine=auto") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace xccl
