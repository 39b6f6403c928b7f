#include "synth/textbook/textbook.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "ir/analysis/bitwise_same.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/synthesizer.h"
#include "synth/common/test_machines.h"
#include "synth/textbook/engines.h"

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

}  // namespace
}  // namespace xccl
