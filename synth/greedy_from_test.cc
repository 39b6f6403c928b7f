// greedy starting from a plan of another engine.
#include <gtest/gtest.h>

#include "ir/simulate.h"
#include "ir/verify_schedule.h"
#include "synth/synthesizer.h"
#include "topologies/load.h"

namespace xccl {
namespace {

Collective All(CollectiveKind kind, int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = kind;
  for (int32_t r = 0; r < ranks; ++r) spec.ranks.push_back(Rank(r));
  if (kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce) spec.root = Rank(1);
  return Collective::Create(spec).value();
}

int64_t TimeOf(const Synthesis& made, const SynthesisRequest& request) {
  return Simulate(made.schedule, made.collective, *request.topology,
                  {.size_bytes = request.size_bytes, .model = request.model})
      .time_ps;
}

TEST(GreedyFrom, IsNeverSlowerThanThePlanItStartsFromAndKeepsItsChunks) {
  const Synthesizer& greedy = *FindSynthesizer("greedy").value();
  int improved = 0, kept = 0;
  for (const char* machine : {"torus:3x3", "mesh:2x4", "dgx1", "nvswitch:4", "rail-2", "ring:6"}) {
    const Topology topology = LoadTopology(machine).value();
    for (const CollectiveKind kind :
         {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
          CollectiveKind::kReduce, CollectiveKind::kAllreduce, CollectiveKind::kAlltoall}) {
      const Collective whole = All(kind, topology.num_ranks());
      for (const char* engine : {"ring", "direct", "tree", "bfb"}) {
        for (const TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
          SCOPED_TRACE(std::string(machine) + " " + std::string(ToString(kind)) + " " + engine);
          SynthesisRequest request{
              .topology = &topology, .collective = &whole, .size_bytes = 1 << 20, .model = model};
          request.limits.work_units = 200'000;
          const StatusOr<Synthesis> start = FindSynthesizer(engine).value()->Synthesize(request);
          if (!start.ok()) continue;
          request.start = &*start;
          const StatusOr<Synthesis> made = greedy.Synthesize(request);
          ASSERT_TRUE(made.ok()) << made.status().message();
          EXPECT_EQ(made->collective, start->collective);
          ASSERT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)).message(), "");
          const int64_t before = TimeOf(*start, request), after = TimeOf(*made, request);
          EXPECT_LE(after, before);
          ++(after < before ? improved : kept);
        }
      }
    }
  }
  EXPECT_GT(improved, 40);
  EXPECT_GT(kept, 40);
}

TEST(GreedyFrom, ImprovesASumInTheOrderOfItsLinks) {
  const Topology topology = LoadTopology("mesh:3x3").value();
  const Collective whole = All(CollectiveKind::kReduceScatter, 9);
  SynthesisRequest request{.topology = &topology, .collective = &whole, .size_bytes = 9 << 20};
  const Synthesis start = FindSynthesizer("direct").value()->Synthesize(request).value();
  request.start = &start;
  const Synthesis made = FindSynthesizer("greedy").value()->Synthesize(request).value();
  EXPECT_LT(TimeOf(made, request), TimeOf(start, request));
}

}  // namespace
}  // namespace xccl
