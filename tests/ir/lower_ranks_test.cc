// The programs of ranks of random compressed schedules, on machines of one kind of ranks and of several; and
// schedules from which no rank's program can be made alone.
#include "ir/lower/lower_ranks.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "base/random.h"
#include "ir/plan.h"
#include "ir/testing/check_runs.h"
#include "ir/testing/translated.h"
#include "ir/testing/trees.h"
#include "ir/verify/verify_plan.h"
#include "ir/verify/verify_schedule.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

using testing::Compressed;
using testing::Make;
using testing::TranslatedAnswer;

TEST(LowerRanks, PartsOfAllRanksAreAProgramOfTheSchedule) {
  Random random(3);
  int lowered = 0;
  for (const char* name :
       {"torus:4x4", "torus:3x5", "torus:2x3x2", "hypercube:4", "full-mesh:5", "nvswitch:6", "mesh:4x4",
        "rail-2", "leaf-spine:3x2x2", "mi250x", "dgx1-full", "ring:8"}) {
    const Topology topology = LoadTopology(name).value();
    const SymmetryGroup group = FindTranslations(topology);
    for (const CollectiveKind kind :
         {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter, CollectiveKind::kAllreduce}) {
      for (const int32_t chunks : {1, 3}) {
        SCOPED_TRACE(fmt::format("{} {} {}", name, ToString(kind), chunks));
        const TranslatedAnswer answer = Compressed(topology, group, kind, chunks, random);
        const StatusOr<RankLowering> lowering =
            RankLowering::Create(answer.schedule, answer.collective, topology, int64_t{1} << 20);
        ASSERT_TRUE(lowering.ok()) << lowering.status().message();
        Program program = lowering->ProgramOf(AllRanks(topology.num_ranks()));
        CheckRuns(program, answer.collective, {.size_bytes = 4 * 45 * 16 * topology.num_ranks()});
        const Plan plan{topology,
                        answer.collective,
                        answer.schedule,
                        LoweredProgram{answer.collective, std::move(program)},
                        {},
                        std::nullopt,
                        {}};
        ASSERT_EQ(ToStatus(VerifyPlan(plan)), OkStatus());
        ++lowered;
      }
    }
  }
  EXPECT_EQ(lowered, 12 * 3 * 2);
}

// Every rank adds up every chunk: the order of the additions must be one.
TEST(LowerRanks, SumsThatSeveralRanksCompleteAreRefused) {
  const Topology topology = LoadTopology("full-mesh:4").value();
  const Collective allreduce = Make(CollectiveKind::kAllreduce, 4).WithChunks(4);
  Schedule columns;
  columns.num_chunks = 4;
  for (Rank to(0); to.value < 4; ++to.value)
    for (const LinkId link : topology.In(topology.NodeOf(to)))
      columns.Add(ChunkId(0), 1, *topology.RankOf(topology.link(link).from), to, std::vector{link},
                  TransferOp::kReduce, 0);
  const Schedule schedule = Translate(std::move(columns), FindTranslations(topology));
  ASSERT_EQ(ToStatus(VerifySchedule(schedule, allreduce, topology)), OkStatus());
  EXPECT_EQ(
      RankLowering::Create(schedule, allreduce, topology, 1024).status().message(),
      "lower: several ranks of the compressed schedule must add up one sum in one order; expected sums that "
      "one rank completes, from which one rank's part can be made");
}

TEST(LowerRanks, TreesAreRefused) {
  const Topology topology = TreeSwitch(4);
  const Collective allgather = Make(CollectiveKind::kAllgather, 4);
  const std::vector<Rank> others = {Rank(1), Rank(2), Rank(3)};
  Schedule columns;
  columns.num_chunks = 4;
  columns.Add(ChunkId(0), 1, Rank(0), Rank(1), TreePath(topology, Rank(0), others, false, 0),
              TransferOp::kCopy, 0);
  const Schedule schedule = Translate(std::move(columns), FindTranslations(topology));
  ASSERT_EQ(ToStatus(VerifySchedule(schedule, allgather, topology)), OkStatus());
  EXPECT_EQ(
      RankLowering::Create(schedule, allgather, topology, 1024).status().message(),
      "lower: the compressed schedule has multicasts or sums in switches; expected chains of links alone, "
      "from which one rank's part can be made");
}

}  // namespace
}  // namespace xccl
