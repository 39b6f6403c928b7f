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

// A machine with the allgather of all its ranks.
struct Machine {
  explicit Machine(const char* text) : topology(LoadTopology(text).value()) {}
  ComparedMachine Compared() const { return {topology.name(), &topology, &allgather}; }

  Topology topology;
  Collective allgather = [this] {
    CollectiveSpec spec;
    spec.kind = CollectiveKind::kAllgather;
    spec.ranks = AllRanks(topology.num_ranks());
    return Collective::Create(spec).value();
  }();
};

TEST(CompareMachines, ComparesLikeWithLike) {
  const Machine ring("ring:3"), volta("dgx1"), amd("mi300x"), hopper("dgx-h100");
  struct Case {
    const char* name;
    std::vector<ComparedMachine> machines;
    std::vector<std::string> models, notes;
  };
  const std::string none =
      "all times are on ideal links: no machine model for ring:3 (no arch), dgx1 (sm70); hint: "
      "--machine=hopper times programs on one GPU for all; --gpu-arch=sm90, or arch in its file, names a "
      "machine's own";
  const Case cases[] = {
      {"all have a model",
       {amd.Compared(), hopper.Compared()},
       {Mi300xModel().source, HopperModel().source},
       {}},
      {"two have none", {amd.Compared(), ring.Compared(), volta.Compared()}, {"", "", ""}, {none}},
      {"all have none", {ring.Compared(), volta.Compared()}, {"", ""}, {none}},
  };
  for (const Case& c : cases) {
    PlanOptions options;
    options.machine_of_topology = true;
    size_t sizes = 0;
    const OnSize on_size = [&](const Comparison& of_size) {
      EXPECT_EQ(of_size.notes, c.notes) << c.name;
      ++sizes;
      return OkStatus();
    };
    const Comparison made = CompareMachines(c.machines, {"ring"}, {1024}, options, on_size).value();
    EXPECT_EQ(sizes, 1U);
    EXPECT_EQ(made.notes, c.notes) << c.name;
    std::vector<std::string> models;
    for (const Compared& on : made.machines) models.push_back(on.machine);
    EXPECT_EQ(models, c.models) << c.name;
    const bool programs = !c.models[0].empty();
    EXPECT_EQ(TimesOfMachines(made).size(), programs ? c.machines.size() : 0) << c.name;
    EXPECT_EQ(made.times.size(), 2 * c.machines.size());  // auto and ring
    for (const PlanTime& timed : made.times)
      EXPECT_EQ(timed.threadblocks.has_value(), programs) << c.name << ' ' << timed.topology;
  }
}

TEST(CompareMachines, AModelThatIsAskedForIsThatOfAll) {
  const Machine ring("ring:3"), hopper("dgx-h100");
  const ComparedMachine machines[] = {ring.Compared(), hopper.Compared()};
  PlanOptions options;
  options.machine = Mi300xModel();
  const Comparison made = CompareMachines(machines, {"ring"}, {1024}, options).value();
  for (const Compared& on : made.machines) EXPECT_EQ(on.machine, Mi300xModel().source);
  EXPECT_TRUE(made.notes.empty());
}

}  // namespace
}  // namespace xccl
