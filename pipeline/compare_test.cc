// Rows of a comparison are the plans that `plan` makes.
#include "pipeline/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/known_machines.h"
#include "pipeline/pipeline.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

TEST(Compare, RowsHaveTheTimesOfMakePlan) {
  const Topology topology = LoadTopology("torus:2x3").value();
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllreduce;
  spec.ranks = AllRanks(topology.num_ranks());
  const Collective allreduce = Collective::Create(spec).value();
  const std::vector<std::string> engines = {"ring", "tree", "bfb", "auto"};
  for (const bool on_machine : {false, true}) {
    PlanOptions options;
    if (on_machine) options.machine = KnownMachine("hopper");
    const Comparison comparison = Compare(topology, allreduce, engines, {1 << 20}, options).value();
    ASSERT_EQ(comparison.times.size(), engines.size());
    for (const std::string& engine : engines) {
      PlanOptions one = options;
      one.engine = engine;
      one.lower = on_machine;
      one.request.size_bytes = 1 << 20;
      const PlanResult result = MakePlan(topology, allreduce, one).value();
      const auto row = std::ranges::find(comparison.times, engine, &PlanTime::engine);
      ASSERT_NE(row, comparison.times.end()) << engine;
      EXPECT_EQ(row->time_ps, on_machine ? *result.program_time_ps : result.simulation.time_ps) << engine;
      EXPECT_EQ(row->made_by, result.plan.made_by.engine) << engine;
      EXPECT_EQ(row->messages, result.schedule_stats.messages) << engine;
      EXPECT_EQ(row->threadblocks.has_value(), on_machine) << engine;
    }
  }
}

}  // namespace
}  // namespace xccl
