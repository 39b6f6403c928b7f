// The programs of single ranks, made from compressed plans of levels (ir/lower/lower_ranks.h). Those of all
// ranks together are proved beside the plan's schedule written out, with the verifier of plan files: every
// message of the program is one of the schedule, and every rank ends with what it must hold.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ir/lower/lower_ranks.h"
#include "ir/plan.h"
#include "ir/testing/check_runs.h"
#include "ir/verify/verify_plan.h"
#include "synth/common/compose.h"
#include "synth/common/reverse.h"
#include "synth/common/test_machines.h"
#include "synth/levels/check_part.h"
#include "synth/levels/levels.h"
#include "synth/levels/send.h"
#include "topologies/load/load.h"
#include "topologies/turned_switches.h"

namespace xccl {
namespace {

using testing::SpecOf;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
                                     CollectiveKind::kAllreduce, CollectiveKind::kAlltoall};
// Up to 64 ranks; with ranks joined by switches that translations keep in place, and that they turn; of
// dragonflies, ranks of several kinds.
constexpr const char* kClusters[] = {"nvswitch:6",   "leaf-spine:4x4x4", "leaf-spine:3x2x4",
                                     "fat-tree:k=4", "fat-tree:k=6",     "fat-tree:rails=4,hosts=6",
                                     "full-mesh:5",  "rail-2",           "rail-4",
                                     "rail-8",       "dragonfly:7x3x2",  "dragonfly:4x4x2"};

// The plan that the engine makes, in its compressed form at any size.
Schedule Compressed(const Topology& topology, const SymmetryGroup& group, const Collective& collective,
                    int64_t most_peers, int64_t bytes) {
  const auto copies = [&](const Topology& machine, const SymmetryGroup& of_machine) {
    const LevelFinder finder(machine, of_machine);
    const LevelEnd all[] = {{of_machine.order(), true}};
    // Kinds share links with ranks of one kind, so that they are one level in an alltoall.
    const bool has_one = collective.kind() == CollectiveKind::kAlltoall && !of_machine.IsTransitive();
    const Levels levels =
        has_one ? *finder.Make(all, "levels") : *finder.Make(finder.Ends(most_peers), "levels");
    return SendOverLevels(levels, machine, of_machine, collective, bytes);
  };
  if (!collective.Reduces()) return copies(topology, group);
  const Topology reversed = ReverseTopology(topology);
  const SymmetryGroup backward = *SymmetryGroup::Create(reversed, group.generators());
  Schedule sums = Reverse(copies(reversed, backward), topology, collective, TransferOp::kReduce);
  if (collective.kind() == CollectiveKind::kReduceScatter) return sums;
  return Compose(sums, copies(topology, group));
}

// One way to plan a collective.
struct Way {
  bool turned;  // by TurnSwitches
  int32_t chunks;
  int64_t most_peers;
};
constexpr Way kWays[] = {{false, 1, int64_t{1} << 30}, {true, 1, int64_t{1} << 30}, {true, 2, 1}};

void CheckPlan(const Topology& topology, CollectiveKind kind, const Way& way) {
  SCOPED_TRACE(fmt::format("{}, {}, {} chunks, {} peers{}", topology.name(), ToString(kind), way.chunks,
                           way.most_peers, way.turned ? ", turned" : ""));
  const std::vector<Rank> ranks = AllRanks(topology.num_ranks());
  const SymmetryGroup found = FindTranslations(topology);
  const SymmetryGroup group = way.turned ? TurnSwitches(topology, found) : found;
  const Collective collective =
      Collective::Create(SpecOf(kind, ranks))
          ->WithChunks(way.chunks * (kind == CollectiveKind::kAllreduce ? topology.num_ranks() : 1));
  const int64_t bytes = int64_t{topology.num_ranks()} << 16;
  Plan plan{
      topology, collective, Compressed(topology, group, collective, way.most_peers, bytes), std::nullopt, {}};
  const StatusOr<RankLowering> lowering = RankLowering::Create(plan.schedule, collective, topology, bytes);
  ASSERT_TRUE(lowering.ok()) << lowering.status().message();
  plan.program = LoweredProgram{collective, lowering->ProgramOf(ranks)};
  ASSERT_EQ(ToStatus(VerifyPlan(plan)), OkStatus());
  CheckRuns(plan.program->program, collective,
            {.size_bytes = 7 * int64_t{4} * topology.num_ranks() * topology.num_ranks()});
  CheckPart(*lowering, plan.program->program, Rank(topology.num_ranks() / 3));
}

TEST(LowerLevels, PartsOfAllRanksTogetherAreAProgramOfThePlan) {
  for (const char* name : kClusters) {
    const Topology topology = *LoadTopology(name);
    for (const CollectiveKind kind : kKinds) {
      for (const Way& way : kWays) {
        CheckPlan(topology, kind, way);
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace xccl
