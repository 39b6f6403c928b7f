// Programs that are made of compressed schedules when a plan file is read.
#include "pipeline/runnable_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "pipeline/pipeline.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

// A plan of so many hosts of eight GPUs in a file, with a compressed schedule and no program.
std::string WriteCompressed(int32_t hosts, CollectiveKind kind) {
  LoadOptions options;
  options.hosts = hosts;
  const Topology topology = LoadTopology("dgx-h100", options).value();
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(topology.num_ranks());
  const PlanResult made = MakePlan(topology, Collective::Create(spec).value(), {.engine = "levels"}).value();
  EXPECT_FALSE(made.plan.schedule.symmetry.empty());
  const std::string file = ::testing::TempDir() + "/compressed.plan.json";
  EXPECT_TRUE(WritePlan(made.plan, file).ok());
  EXPECT_FALSE(ReadPlanUnverified(file)->schedule.symmetry.empty());
  return file;
}

TEST(RunnablePlan, MakesTheProgramOfAllRanksOrOfOne) {
  const std::string file = WriteCompressed(64, CollectiveKind::kReduceScatter);
  const StatusOr<Plan> whole = ReadRunnablePlan(file), own = ReadRunnablePlan(file, Rank(77)),
                       part = ReadPlanOfRank(file, Rank(77));
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  ASSERT_TRUE(own.ok()) << own.status().message();
  ASSERT_TRUE(part.ok()) << part.status().message();
  const Program& of_all = whole->program->program;
  const Program& of_one = own->program->program;
  EXPECT_EQ(of_one.connections, of_all.connections);
  for (Rank r(0); r.value < of_all.ranks.size(); ++r.value) {
    const bool has = r == Rank(77);
    EXPECT_EQ(of_one.ranks[r].scratch.empty(), !has || of_all.ranks[r].scratch.empty());
    EXPECT_FALSE(of_one.ranks[r].threadblocks.empty());
    EXPECT_EQ(part->program->program.ranks[r].threadblocks.empty(), !has);
  }
  EXPECT_EQ(part->program->program.ranks[Rank(77)].scratch, of_all.ranks[Rank(77)].scratch);
  for (const Connection& connection : part->program->program.connections)
    EXPECT_TRUE(connection.src == Rank(77) || connection.dst == Rank(77));
  EXPECT_EQ(ReadPlanOfRank(file, Rank(512)).status().message(), file + ": no rank 512; ranks are 0..511");
}

TEST(RunnablePlan, SaysWhyThereIsNoProgramOfAllRanks) {
  const std::string file = WriteCompressed(512, CollectiveKind::kAllgather);
  EXPECT_EQ(
      ReadRunnablePlan(file).status().message(),
      file +
          ": no program in the plan, and one of all 4096 ranks has 16773120 messages; expected at most "
          "4194304 in one process; hint: emit --to program --rank R, or run with a process for each rank");
  EXPECT_TRUE(ReadPlanOfRank(file, Rank(4095)).ok());
}

TEST(RunnablePlan, APlainScheduleWithoutAProgramIsRefused) {
  const Topology topology = LoadTopology("ring:4").value();
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllgather;
  spec.ranks = AllRanks(4);
  const Plan plan = MakePlan(topology, Collective::Create(spec).value(), {.engine = "ring"}).value().plan;
  const std::string file = ::testing::TempDir() + "/plain.plan.json";
  ASSERT_TRUE(WritePlan(plan, file).ok());
  EXPECT_EQ(
      ReadRunnablePlan(file).status().message(),
      file +
          ": no program in the plan, and its schedule is not compressed; expected one of the two; hint: "
          "xccl-synth plan ... --lower -o FILE writes a program");
}

// A plan that has a program gives each rank its part of it.
TEST(RunnablePlan, TakesARankOutOfAProgram) {
  const Topology topology = LoadTopology("ring:4").value();
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllreduce;
  spec.ranks = AllRanks(4);
  const Plan plan =
      MakePlan(topology, Collective::Create(spec).value(), {.engine = "ring", .lower = true}).value().plan;
  const std::string file = ::testing::TempDir() + "/whole.plan.json";
  ASSERT_TRUE(WritePlan(plan, file).ok());
  const Program part = ReadPlanOfRank(file, Rank(2)).value().program->program;
  const Program& whole = plan.program->program;
  ASSERT_EQ(part.ranks[Rank(2)].threadblocks.size(), whole.ranks[Rank(2)].threadblocks.size());
  EXPECT_TRUE(part.ranks[Rank(1)].threadblocks.empty());
  EXPECT_EQ(part.connections.size(), 4u);  // two rings
  for (size_t b = 0; b < part.ranks[Rank(2)].threadblocks.size(); ++b) {
    const auto& of_part = part.ranks[Rank(2)].threadblocks[b].instructions;
    const auto& of_whole = whole.ranks[Rank(2)].threadblocks[b].instructions;
    ASSERT_EQ(of_part.size(), of_whole.size());
    for (size_t i = 0; i < of_part.size(); ++i)
      for (int32_t d = 0; d < of_whole[i].dep_count; ++d)
        EXPECT_EQ(part.dependencies[static_cast<size_t>(of_part[i].dep_first + d)],
                  whole.dependencies[static_cast<size_t>(of_whole[i].dep_first + d)]);
  }
}

}  // namespace
}  // namespace xccl
