// Which program is kept of several schedules of one request.
#include "pipeline/lower_fastest.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ir/simulate/simulate.h"
#include "ir/translated.h"
#include "synth/common/test_machines.h"
#include "topologies/symmetry.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

Collective Of(CollectiveKind kind, int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(ranks);
  if (IsRooted(kind)) spec.root = Rank(0);
  return Collective::Create(std::move(spec)).value();
}

// The slow link to rank 1 takes the time of the plan; rank 2 gets two chunks, in one message or in two.
Synthesis Broadcast(const std::string& engine, const Topology& topology, int64_t size_bytes,
                    bool in_one_message) {
  Synthesis made{.collective = Of(CollectiveKind::kBroadcast, 3).WithChunks(2),
                 .schedule = {},
                 .engine = engine,
                 .note = ""};
  made.schedule.num_chunks = 2;
  const std::vector<LinkId> slow = {LinkId(0)}, fast = {LinkId(1)};
  made.schedule.Add(ChunkId(0), 2, Rank(0), Rank(1), slow, TransferOp::kCopy, 0);
  made.schedule.Add(ChunkId(0), 1, Rank(0), Rank(2), fast, TransferOp::kCopy, 0);
  made.schedule.Add(ChunkId(1), 1, Rank(0), Rank(2), fast, TransferOp::kCopy, in_one_message ? 0 : 1);
  Normalize(made.schedule);
  made.simulation = Simulate(made.schedule, made.collective, topology, {.size_bytes = size_bytes});
  return made;
}

TEST(LowerFastest, OfProgramsOfOneTimeFewerMessagesCountWhereMessagesAreShort) {
  const Topology topology = ReadNativeXml(R"(<topology name="odd"><host name="h0"><gpu count="3"/>
      <link from="gpu:0" to="gpu:1" bandwidth="1GB/s" duplex="false"/>
      <link from="gpu:0" to="gpu:2" bandwidth="100GB/s" duplex="false"/></host></topology>)",
                                          "odd.xml")
                                .value();
  struct Case {
    int64_t size_bytes;
    std::string kept;
  };
  for (const Case& c : {Case{256, "few"}, {1 << 20, "many"}}) {
    PlanOptions options{.lower = true};
    options.request.size_bytes = c.size_bytes;
    std::vector<Synthesis> found = {Broadcast("many", topology, c.size_bytes, false),
                                    Broadcast("few", topology, c.size_bytes, true)};
    const StatusOr<FastestProgram> lowered = LowerFastest(topology, options, found);
    ASSERT_TRUE(lowered.ok()) << lowered.status().message();
    EXPECT_TRUE(lowered->program);
    EXPECT_EQ(found[0].engine, c.kept) << c.size_bytes;
    EXPECT_EQ(lowered->note, c.kept == "few" ? "fastest program of 2 engines" : "");
  }
}

// Sends every chunk along the ring: 10,302 transfers.
Synthesis LongAllgather(const Topology& topology) {
  const int32_t ranks = topology.num_ranks();
  Synthesis made{
      .collective = Of(CollectiveKind::kAllgather, ranks), .schedule = {}, .engine = "ring", .note = ""};
  made.schedule.num_chunks = ranks;
  for (int32_t step = 0; step + 1 < ranks; ++step)
    for (int32_t chunk = 0; chunk < ranks; ++chunk) {
      const Rank from((chunk + step) % ranks), to((from.value + 1) % ranks);
      made.schedule.Add(ChunkId(chunk), 1, from, to, std::vector{LinkId(2 * from.value)}, TransferOp::kCopy,
                        step);
    }
  Normalize(made.schedule);
  made.simulation = Simulate(made.schedule, made.collective, topology, {});
  return made;
}

TEST(LowerFastest, ALongScheduleThatCannotBeLoweredLeavesTheTurnToAnotherOfItsEngine) {
  const Topology topology = testing::MakeRing(102);
  Synthesis too_long = LongAllgather(topology);
  too_long.simulation->time_ps = 1;  // it would be lowered first
  too_long.schedule = {};
  too_long.schedule.num_chunks = topology.num_ranks();
  too_long.schedule.symmetry = FindTranslations(topology).generators();
  for (int64_t i = 0; i <= kMostTransfers / topology.num_ranks(); ++i)
    too_long.schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), std::vector{LinkId(0)}, TransferOp::kCopy, 0);
  std::vector<Synthesis> found = {LongAllgather(topology), std::move(too_long)};
  const StatusOr<FastestProgram> lowered = LowerFastest(topology, {.lower = true}, found);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_TRUE(lowered->program) << lowered->no_program;
}

// The columns are few, and their plain form is long.
TEST(LowerFastest, ACompressedScheduleIsAsLongAsItsPlainForm) {
  const Topology topology = testing::MakeRing(102);
  Synthesis fast = LongAllgather(topology), slow = fast;
  fast.note = "fastest of 2 engines";
  slow.engine = "slow";
  slow.schedule = {};
  slow.schedule.num_chunks = topology.num_ranks();
  slow.schedule.symmetry = FindTranslations(topology).generators();
  for (int32_t step = 0; step + 1 < topology.num_ranks(); ++step)
    slow.schedule.Add(ChunkId(0), 1, Rank(step), Rank(step + 1), std::vector{LinkId(2 * step)},
                      TransferOp::kCopy, step);
  slow.simulation->time_ps *= 2;
  std::vector<Synthesis> found = {std::move(fast), std::move(slow)};
  const StatusOr<FastestProgram> lowered = LowerFastest(topology, {.lower = true}, found);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_EQ(found[0].engine, "ring");
  EXPECT_EQ(lowered->note, "");  // no other program was made
}

}  // namespace
}  // namespace xccl
