// Which plans get a program, and whose is written.
#include "pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/simulate/simulate.h"
#include "synth/engines.h"
#include "topologies/load/load.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

Collective Of(CollectiveKind kind, const Topology& topology) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(topology.num_ranks());
  return Collective::Create(std::move(spec)).value();
}

// Written out it would have 5.6 million transfers, of which a program could not be proved.
TEST(Pipeline, APlanThatIsTooLongToBeWrittenOutIsKeptWithoutItsProgram) {
  const Topology topology = LoadTopology("torus:8x16x16").value();
  const StatusOr<PlanResult> result =
      MakePlan(topology, Of(CollectiveKind::kAllgather, topology), {.lower = true});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->no_program,
            "the schedule, kept compressed, is too long to be lowered for all ranks; hint: emit --to program "
            "--rank R");
}

// Binomial trees take 1.5 times as long as the fastest schedule, but theirs is the fastest program.
TEST(Pipeline, TinyPlansAreComparedAsPrograms) {
  const Topology topology = ReadNativeXml(R"(<topology name="odd"><host name="h0">
    <gpu count="6"/><cpu count="2"/><switch id="p" count="2"/>
    <link from="gpu:0..3" to="p0" bandwidth="24GB/s" latency="500ns"/>
    <link from="gpu:4..5" to="p1" bandwidth="12GB/s" latency="500ns"/>
    <link from="p0" to="cpu0" bandwidth="24GB/s" latency="500ns"/>
    <link from="p1" to="cpu1" bandwidth="12GB/s" latency="500ns"/>
    <link from="cpu0" to="cpu1" bandwidth="6GB/s" latency="1us"/></host></topology>)",
                                          "odd.xml")
                                .value();
  const Collective allreduce = Of(CollectiveKind::kAllreduce, topology);
  PlanOptions options{.lower = true};
  options.request.size_bytes = 1 << 20;
  const PlanResult best = MakePlan(topology, allreduce, options).value();
  for (const char* const engine : {"binomial", "tree", "ring", "greedy"}) {
    options.engine = engine;
    const StatusOr<PlanResult> other = MakePlan(topology, allreduce, options);
    ASSERT_TRUE(other.ok()) << other.status().message();
    EXPECT_LE(*best.program_time_ps, *other->program_time_ps * 102 / 100) << engine;
  }
}

// forest keeps plans beside its best that it did not simulate; here the program of one of them is the
// fastest.
TEST(Pipeline, TheTimeOfAPlanIsThatOfItsOwnSchedule) {
  const Topology topology = ReadNativeXml(R"(<topology name="odd">
                            <switch id="s0"/> <switch id="s4"/> <switch id="s8"/>
                            <gpu id="g1"/> <gpu id="g2"/> <gpu id="g3"/> <gpu id="g5"/> <gpu id="g6"/> <gpu id="g11"/>
                            <link from="g1" to="s0" bandwidth="25GB/s"/>
                            <link from="g2" to="s0" bandwidth="25GB/s"/>
                            <link from="g3" to="s0" bandwidth="25GB/s"/>
                            <link from="g5" to="s4" bandwidth="25GB/s" latency="500ns"/>
                            <link from="g6" to="s4" bandwidth="25GB/s" latency="500ns"/>
                            <link from="g11" to="s8" bandwidth="199206215B/s"/>
                            <link from="s4" to="s0" bandwidth="175176904B/s"/>
                            <link from="s8" to="s0" bandwidth="25GB/s"/>
                          </topology>)",
                                          "odd.xml")
                                .value();
  const Collective allreduce = Of(CollectiveKind::kAllreduce, topology);
  PlanOptions options{.engine = "forest", .lower = true};
  options.request.size_bytes = 4 << 10;
  const PlanResult result = MakePlan(topology, allreduce, options).value();
  const Simulation own =
      Simulate(result.plan.schedule, result.plan.collective, topology, {.size_bytes = 4 << 10});
  EXPECT_EQ(result.simulation.time_ps, own.time_ps);
}

// Every rank is sent the sum of all, and adds it to its own contribution.
TEST(Pipeline, AnEnginesWrongPlanCostsItsTurnAndIsSaid) {
  const Topology topology = LoadTopology("full-mesh:3").value();
  const Collective allreduce = Of(CollectiveKind::kAllreduce, topology);
  int32_t asked = 0;
  const auto synthesize = [&](const SynthesisRequest& request) -> StatusOr<Synthesis> {
    ++asked;
    XCCL_ASSIGN_OR_RETURN(const Engine* const ring, FindEngine("ring"));
    XCCL_ASSIGN_OR_RETURN(Synthesis made, ring->Synthesize(request));
    if (!request.passed_over.empty()) return made;
    made.engine = "liar";
    std::ranges::fill(made.schedule.op, TransferOp::kReduce);
    return made;
  };
  const Engine engine{
      .name = kDefaultEngine, .summary = "", .kinds = {CollectiveKind::kAllreduce}, .make = synthesize};
  for (const bool lower : {false, true}) {
    asked = 0;
    const StatusOr<PlanResult> result = MakePlanBy(engine, topology, allreduce, {.lower = lower});
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(asked, 2);
    EXPECT_EQ(result->plan.made_by.engine, "ring");
    ASSERT_EQ(result->faults.size(), 1u);
    EXPECT_TRUE(result->faults[0].starts_with("liar: it made a wrong plan: [S4] ")) << result->faults[0];
  }
  // Nobody else is asked in place of an engine that was named.
  const StatusOr<PlanResult> named = MakePlanBy(engine, topology, allreduce, {.engine = "liar"});
  ASSERT_EQ(named.status().code(), StatusCode::kBug);
  EXPECT_TRUE(named.status().message().starts_with("liar: it made a wrong plan: [S4] "));
}

}  // namespace
}  // namespace xccl
