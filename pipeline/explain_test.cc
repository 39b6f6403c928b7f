#include "pipeline/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

struct Explained {
  Topology topology;
  Collective collective;
  PlanOptions options;
  PlanResult result;
  Explanation explanation;
};

Explained ExplainPlan(const std::string& machine, CollectiveKind kind, int64_t size_bytes, bool lower = false,
                      const std::string& engine = std::string(kDefaultEngine)) {
  const Topology topology = LoadTopology(machine).value();
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(topology.num_ranks());
  const Collective collective = Collective::Create(spec).value();
  PlanOptions options;
  options.engine = engine;
  options.request.size_bytes = size_bytes;
  options.lower = lower;
  options.machine_of_topology = true;
  PlanResult result = MakePlan(topology, collective, options).value();
  Explanation explanation = Explain(result, collective, options);
  return {topology, collective, options, std::move(result), std::move(explanation)};
}

const WhatIf* Find(const Explanation& explanation, const std::string& start) {
  const auto found = std::ranges::find_if(
      explanation.changes, [&](const WhatIf& change) { return change.change.starts_with(start); });
  return found == explanation.changes.end() ? nullptr : &*found;
}

TEST(Explain, ThePathIsThatOfThePlansTime) {
  for (const bool lower : {false, true}) {
    const Explained made = ExplainPlan("dgx-h100", CollectiveKind::kAllreduce, 1 << 20, lower);
    EXPECT_EQ(made.explanation.of_program, lower);
    EXPECT_EQ(made.explanation.time_ps,
              lower ? *made.result.program_time_ps : made.result.simulation.time_ps);
    EXPECT_EQ(made.explanation.path.pieces.back().end_ps, made.explanation.time_ps);
  }
}

TEST(Explain, ChangesAreSimulated) {
  const Explained made = ExplainPlan("torus:4x4", CollectiveKind::kAllgather, 64 << 20);
  const WhatIf* const wide = Find(made.explanation, "gpu-gpu links of 50GB/s twice as fast");
  ASSERT_NE(wide, nullptr);
  EXPECT_FALSE(wide->replanned);
  EXPECT_LT(wide->time_ps, made.result.simulation.time_ps);
  for (const WhatIf& change : made.explanation.changes) {
    EXPECT_GE(change.time_ps, change.bound_ps) << change.change;
    EXPECT_GT(change.bound_ps, 0) << change.change;
  }
  EXPECT_TRUE(std::ranges::is_sorted(made.explanation.changes, {}, &WhatIf::time_ps));
  EXPECT_NE(Find(made.explanation, "half the latency"), nullptr);
  const WhatIf* const chunks =
      Find(made.explanation,
           std::to_string(2 * made.result.plan.collective.ChunksOf(PartId(0))) + " chunks a part");
  if (chunks != nullptr) {
    EXPECT_TRUE(chunks->replanned);
  }
  EXPECT_EQ(Find(made.explanation, "one more NIC"), nullptr);  // it has none
}

// A machine whose links are all alike, at a size at which only their bandwidth counts.
TEST(Explain, TwiceTheBandwidthTakesHalfTheTime) {
  const Explained made =
      ExplainPlan("ring:4@bandwidth=10GB/s,latency=0ns", CollectiveKind::kAllgather, 64 << 20, false, "ring");
  const WhatIf* const wide = Find(made.explanation, "gpu-gpu links of 10GB/s twice as fast");
  ASSERT_NE(wide, nullptr);
  EXPECT_NEAR(static_cast<double>(wide->time_ps), static_cast<double>(made.result.simulation.time_ps) / 2,
              1000);
}

TEST(Explain, OneMoreNicIsPlannedAnew) {
  // Half of what a rank sends goes to the other host.
  const Explained made = ExplainPlan("rail-2", CollectiveKind::kAlltoall, 1 << 20);
  const WhatIf* const nic = Find(made.explanation, "one more NIC in every host");
  ASSERT_NE(nic, nullptr);
  EXPECT_TRUE(nic->replanned);
  EXPECT_LT(nic->bound_ps, made.result.bound.bound_ps);
}

TEST(Explain, SaysSoInFiveLines) {
  const Explained made = ExplainPlan("dgx1", CollectiveKind::kAllreduce, 1 << 20);
  const std::vector<NamedLine> lines = LinesOf(made.explanation, made.result);
  ASSERT_EQ(lines.size(), 5u);
  const std::vector<std::string> names = {"bound", "path", "next", "faster", "no gain"};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(lines[i].name, names[i]);
    EXPECT_FALSE(lines[i].text.empty());
  }
  EXPECT_TRUE(lines[1].text.starts_with("of the schedule's ")) << lines[1].text;
  EXPECT_NE(lines[1].text.find("bytes on links"), std::string::npos);
  ASSERT_TRUE(made.result.next);
  EXPECT_TRUE(lines[2].text.starts_with(made.result.next->engine + "'s schedule would take "))
      << lines[2].text;
  EXPECT_NE(made.result.next->engine, made.result.plan.made_by.engine);
}

TEST(Explain, TriesNothingAfterTheDeadline) {
  const Topology topology = LoadTopology("dgx1").value();
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllgather;
  spec.ranks = AllRanks(8);
  const Collective collective = Collective::Create(spec).value();
  PlanOptions options;
  options.request.size_bytes = 1 << 20;
  const PlanResult result = MakePlan(topology, collective, options).value();
  options.deadline = Deadline(0);
  const Explanation explanation = Explain(result, collective, options);
  EXPECT_TRUE(explanation.changes.empty());
  EXPECT_NE(explanation.stopped.find("passed before all changes were tried"), std::string::npos);
  // Whether the path was found depends on how seldom the clock is read.
  if (explanation.untraced.empty()) return;
  EXPECT_TRUE(explanation.untraced.ends_with("passed while the simulation was traced"))
      << explanation.untraced;
  EXPECT_EQ(LinesOf(explanation, result)[1].text, "not traced: " + explanation.untraced);
}

// A long path that no trace holds costs the explanation one line, and the plan nothing.
TEST(Explain, ATimeThatNothingCanSayIsNotTraced) {
  const Topology topology = LoadTopology("ring:2@bandwidth=1000B/s,latency=0ns").value();
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllgather;
  spec.ranks = AllRanks(2);
  const Collective collective = Collective::Create(spec).value();
  PlanOptions options;
  options.engine = "ring";
  options.request.size_bytes = 1 << 20;
  PlanResult result = MakePlan(topology, collective, options).value();
  options.request.size_bytes = int64_t{1} << 40;
  const Explanation explanation = Explain(result, collective, options);
  EXPECT_EQ(explanation.untraced, "the schedule takes longer than times can say");
  EXPECT_EQ(LinesOf(explanation, result)[1].text, "not traced: the schedule takes longer than times can say");
}

}  // namespace
}  // namespace xccl
