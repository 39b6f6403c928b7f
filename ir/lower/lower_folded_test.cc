#include <gtest/gtest.h>

#include "ir/lower/testing/checked.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulate_program.h"
#include "ir/testing/check_runs.h"
#include "ir/testing/graphs.h"
#include "ir/testing/programs.h"
#include "ir/verify/verify_program.h"

namespace xccl {
namespace {

// 1 GB/s without latency from rank to rank.
Topology Line(int32_t ranks) {
  std::vector<testing::Edge> links;
  for (int32_t r = 0; r + 1 < ranks; ++r) links.push_back({r, r + 1, 1, 0, 0});
  return testing::MakeGraph("line", ranks, 0, links);
}

Collective BroadcastFromZero(int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kBroadcast;
  spec.ranks = AllRanks(ranks);
  spec.root = Rank(0);
  return Collective::Create(spec).value();
}

// Chunk c crosses link h in step c + h.
Schedule Pipeline(const Collective& collective, const Topology& line) {
  Schedule schedule;
  schedule.num_chunks = collective.num_chunks();
  for (int32_t c = 0; c < collective.num_chunks(); ++c)
    for (int32_t h = 0; h < line.num_links(); ++h)
      schedule.Add(ChunkId(c), 1, Rank(h), Rank(h + 1), std::vector{LinkId(h)}, TransferOp::kCopy, c + h);
  Normalize(schedule);
  return schedule;
}

int64_t Instructions(const LoweredProgram& lowered) {
  return Stats(lowered.program, CollectiveSizes(lowered.collective, 1 << 20)).instructions;
}

// Judges the program by the schedule's collective: inputs and outputs do not depend on chunks.
void CheckProgram(const LoweredProgram& lowered, const Collective& collective, const Topology& topology,
                  int64_t size_bytes) {
  ASSERT_EQ(ToStatus(VerifyProgram(lowered.program, lowered.collective, topology)).message(), "");
  CheckRuns(lowered.program, lowered.collective, {.size_bytes = size_bytes}, collective);
}

TEST(LowerFolded, ComputesThePostconditionOfEveryKindAndAlgorithm) {
  int folded = 0;
  for (const int32_t ranks : {1, 2, 3, 8}) {
    const Topology topology = FullMesh(ranks);
    for (const CollectiveKind kind : AllNamedCollectives()) {
      for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
        const Collective whole = MakeCollective(kind, ranks);
        const Collective collective =
            whole.WithWeights(std::vector<std::vector<int64_t>>(whole.num_parts(), {1, 3, 3, 2}));
        SCOPED_TRACE(std::string(ToString(kind)) + " " + std::string(ToString(algorithm)));
        const StatusOr<LoweredProgram> lowered = LowerFoldedChecked(
            *HandSchedule(algorithm, collective, topology), collective, topology, {.size_bytes = 4096});
        ASSERT_TRUE(lowered.ok()) << lowered.status().message();
        folded += lowered->collective.num_chunks() < collective.num_chunks() ? 1 : 0;
        for (const int64_t size : {0, 52, 1000, 4096}) CheckProgram(*lowered, collective, topology, size);
      }
    }
  }
  EXPECT_GT(folded, 50);
}

TEST(LowerFolded, WavesBecomePassesInTheSameTime) {
  const Topology line = Line(4);
  const Collective collective = BroadcastFromZero(4).WithWeights({{1, 2, 4, 8, 8, 8, 8, 8, 8, 4, 2, 1}});
  const Schedule schedule = Pipeline(collective, line);
  const LoweredProgram lowered = LowerFoldedChecked(schedule, collective, line).value();
  EXPECT_EQ(lowered.collective, collective.WithWeights({{62}}));
  // One instruction at either end, a forwarding one at each rank between, and the root's own copy.
  EXPECT_EQ(Instructions(lowered), 5 * lowered.program.instances);
  EXPECT_GT(NumPasses(lowered.program, CollectiveSizes(lowered.collective, 64 << 20)), 1);
  const int64_t planned = Simulate(schedule, collective, line, {}).time_ps;
  const int64_t timed = SimulateProgram(lowered.program, lowered.collective, line, {}).value().time_ps;
  EXPECT_LE(timed, planned + planned / 50);
  CheckProgram(lowered, collective, line, 1000);
}

// 8 KiB cannot be cut into as many passes as it has chunks.
TEST(LowerFolded, WavesStayWhereFoldingLosesTime) {
  const Topology line = Line(4);
  const Collective collective = BroadcastFromZero(4).WithChunks(8);
  const LoweredProgram lowered =
      LowerFoldedChecked(Pipeline(collective, line), collective, line, {.size_bytes = 8 << 10}).value();
  EXPECT_EQ(lowered.collective, collective);
}

TEST(LowerFolded, OnlyNeighboursOnTheSamePathsAreOne) {
  const Topology mesh = FullMesh(3);
  struct Case {
    const char* name;
    std::vector<int32_t> first;  // by chunk: the rank that it goes to first
    std::vector<int64_t> weights;
  };
  const Case cases[] = {
      {"two halves", {1, 1, 2, 2}, {2, 2}},
      {"all alike", {2, 2, 2}, {3}},
      {"no neighbours", {1, 2, 1}, {1, 1, 1}},
      {"a run at the end", {2, 1, 1, 1}, {1, 3}},
  };
  for (const Case& c : cases) {
    const Collective collective = BroadcastFromZero(3).WithChunks(static_cast<int32_t>(c.first.size()));
    Schedule schedule;
    schedule.num_chunks = collective.num_chunks();
    for (int32_t chunk = 0; chunk < collective.num_chunks(); ++chunk) {
      const Rank near(c.first[static_cast<size_t>(chunk)]), far(3 - near.value);
      schedule.Add(ChunkId(chunk), 1, Rank(0), near, LinkBetween(mesh, Rank(0), near), TransferOp::kCopy,
                   2 * chunk);
      schedule.Add(ChunkId(chunk), 1, near, far, LinkBetween(mesh, near, far), TransferOp::kCopy,
                   2 * chunk + 1);
    }
    Normalize(schedule);
    const LoweredProgram lowered = LowerFoldedChecked(schedule, collective, mesh).value();
    EXPECT_EQ(lowered.collective, collective.WithWeights({c.weights})) << c.name;
    CheckProgram(lowered, collective, mesh, 1000);
  }
}

}  // namespace
}  // namespace xccl
