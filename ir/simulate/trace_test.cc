#include "ir/simulate/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "ir/simulate/random_schedules.h"
#include "ir/testing/graphs.h"
#include "ir/testing/translated.h"
#include "ir/translated.h"

namespace xccl {
namespace {

using testing::Links;
using testing::MakeCollective;
using testing::MakeGraph;
using testing::MakeGrid;

// Checks the properties that every trace has.
void Check(const ScheduleTrace& trace, const SimulateOptions& options, const Collective& collective,
           const Topology& topology) {
  const int64_t time_ps = trace.simulation.time_ps;
  EXPECT_EQ(time_ps, Simulate(trace.schedule, collective, topology, options).time_ps);
  int64_t last = 0;
  for (const TracedHop& hop : trace.hops) {
    EXPECT_LE(hop.start_ps, hop.end_ps);
    EXPECT_LE(hop.end_ps, hop.arrival_ps);
    if (trace.ran_segments == trace.segments) {
      EXPECT_LE(hop.busy_ps, hop.end_ps - hop.start_ps);
    }
    last = std::max(last, hop.arrival_ps);
  }
  EXPECT_EQ(last, time_ps);
  EXPECT_EQ(std::ranges::max(trace.chunk_arrival_ps), time_ps);
  std::map<LinkId, int64_t> free_at;
  std::vector<int64_t> segments(trace.hops.size(), 0);
  for (const TracedSlice& slice : trace.slices) {
    const TracedHop& hop = trace.hops[static_cast<size_t>(slice.hop)];
    EXPECT_GE(slice.start_ps, free_at[hop.link]);
    EXPECT_GE(slice.start_ps, hop.start_ps);
    EXPECT_LE(slice.end_ps, hop.end_ps);
    free_at[hop.link] = slice.end_ps;
    segments[static_cast<size_t>(slice.hop)] += slice.segments;
  }
  ASSERT_FALSE(trace.critical_path.pieces.empty());
  int64_t at = 0;
  for (const PathPiece& piece : trace.critical_path.pieces) {
    EXPECT_EQ(piece.start_ps, at);
    EXPECT_LT(piece.start_ps, piece.end_ps);
    at = piece.end_ps;
  }
  EXPECT_EQ(at, time_ps);
  int64_t shares_ps = 0;
  for (const PathShare& share : SharesOf(trace.critical_path)) shares_ps += share.ps;
  EXPECT_EQ(shares_ps, time_ps);
}

ScheduleTrace Traced(const Schedule& schedule, const Collective& collective, const Topology& topology,
                     const SimulateOptions& options, const TraceOptions& limits = {}) {
  ScheduleTrace trace = TraceSchedule(schedule, collective, topology, options, limits).value();
  Check(trace, options, collective, topology);
  return trace;
}

// 0 -> 1 -> 2 at 1 GB/s and 100 ns, as `chunks` chunks in two messages.
struct Chain {
  Topology topology = MakeGraph("chain", 3, 0, {{0, 1, 1, 100}, {1, 2, 1, 100}});
  Collective collective = MakeCollective(CollectiveKind::kBroadcast, 3, Rank(0));
  Schedule schedule;
  Chain() {
    schedule.num_chunks = 1;
    schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 0);
    schedule.Add(ChunkId(0), 1, Rank(1), Rank(2), Links({1}), TransferOp::kCopy, 1);
  }
};

TEST(Trace, SaysWhenAMessageIsOnEachLink) {
  const Chain chain;
  const ScheduleTrace trace =
      Traced(chain.schedule, chain.collective, chain.topology, {.size_bytes = 1000, .segment_bytes = 500});
  ASSERT_EQ(trace.hops.size(), 2u);
  EXPECT_EQ(trace.hops[0].start_ps, 0);
  EXPECT_EQ(trace.hops[0].end_ps, 1'000'000);
  EXPECT_EQ(trace.hops[0].arrival_ps, 1'100'000);
  EXPECT_EQ(trace.hops[1].start_ps, 600'000);
  EXPECT_EQ(trace.hops[1].end_ps, 1'600'000);
  EXPECT_EQ(trace.hops[1].busy_ps, 1'000'000);
  EXPECT_EQ(trace.messages[1].bytes, 1000);
  EXPECT_EQ(trace.messages[1].step, 1);
  EXPECT_EQ(trace.chunk_arrival_ps, std::vector<int64_t>({1'100'000, 1'700'000}));
  ASSERT_EQ(trace.slices.size(), 2u);
  EXPECT_EQ(trace.slices[0].segments, 2);
  // The second segment arrives at 1100 ns, when link 1 has just sent the first: the busy link is the cause.
  const std::vector<PathPiece> expected = {
      {PathKind::kTransfer, 0, 500'000, LinkId(0), 0, {}},
      {PathKind::kLatency, 500'000, 600'000, LinkId(0), 0, {}},
      {PathKind::kTransfer, 600'000, 1'600'000, LinkId(1), 1, {}},
      {PathKind::kLatency, 1'600'000, 1'700'000, LinkId(1), 1, {}},
  };
  EXPECT_EQ(trace.critical_path.pieces, expected);
}

TEST(Trace, TheBlockingModelHoldsTheLinkForTheLatency) {
  const Chain chain;
  const ScheduleTrace trace = Traced(chain.schedule, chain.collective, chain.topology,
                                     {.size_bytes = 1000, .model = TimeModel::kBlocking});
  const std::vector<PathShare> shares = SharesOf(trace.critical_path);
  ASSERT_EQ(shares.size(), 4u);
  EXPECT_EQ(shares[0], (PathShare{PathKind::kTransfer, LinkId(0), {}, 1'000'000, 1}));
  EXPECT_EQ(shares[3], (PathShare{PathKind::kLatency, LinkId(1), {}, 100'000, 1}));
  EXPECT_EQ(trace.hops[0].end_ps, trace.hops[0].arrival_ps);
}

TEST(Trace, IsThatOfTheSimulationForRandomSchedules) {
  Random random(11);
  for (int trial = 0; trial < 100; ++trial) {
    const testing::Playground playground = testing::RandomPlayground(random);
    const int32_t chunks = 1 + static_cast<int32_t>(random.Below(3));
    const Collective collective =
        MakeCollective(CollectiveKind::kAllreduce, playground.topology.num_ranks()).WithChunks(chunks);
    const Schedule schedule = testing::RandomSchedule(random, playground, chunks);
    for (TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
      SCOPED_TRACE(std::to_string(trial) + " " + std::string(ToString(model)));
      const ScheduleTrace trace = Traced(schedule, collective, playground.topology,
                                         {.size_bytes = 1200 * chunks, .model = model, .segment_bytes = 400});
      EXPECT_FALSE(trace.critical_path.stretched);
      EXPECT_FALSE(trace.slices.empty());
    }
  }
}

TEST(Trace, EverySegmentIsRunWhereThatIsCheap) {
  const Chain chain;
  for (TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
    const ScheduleTrace trace = Traced(chain.schedule, chain.collective, chain.topology,
                                       {.size_bytes = 1 << 30, .model = model, .segment_bytes = 64 << 10});
    EXPECT_EQ(trace.segments, 16'384);
    EXPECT_EQ(trace.ran_segments, trace.segments);
    EXPECT_FALSE(trace.critical_path.stretched);
  }
}

// 4 Mi segments: the simulation extrapolates from a few thousand, and so does its trace.
TEST(Trace, ALongRunIsExtrapolatedAsTheSimulationIs) {
  const Chain chain;
  for (TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
    const ScheduleTrace trace = Traced(chain.schedule, chain.collective, chain.topology,
                                       {.size_bytes = 1 << 30, .model = model, .segment_bytes = 256});
    EXPECT_EQ(trace.segments, 4 << 20);
    EXPECT_LT(trace.ran_segments, trace.segments);
    EXPECT_TRUE(trace.critical_path.stretched);
    EXPECT_TRUE(trace.slices.empty());
    // Link 0 is done one segment and a latency before link 1.
    const int64_t lag_ps = trace.hops[1].end_ps - trace.hops[0].end_ps;
    EXPECT_NEAR(static_cast<double>(lag_ps), 256'000 + 100'000, 2'000);
  }
}

TEST(Trace, SlicesEndAtTheirLimit) {
  const Chain chain;
  const SimulateOptions options{.size_bytes = 1000};
  EXPECT_EQ(
      Traced(chain.schedule, chain.collective, chain.topology, options, {.most_slices = 2}).slices.size(),
      2u);
  EXPECT_TRUE(
      Traced(chain.schedule, chain.collective, chain.topology, options, {.most_slices = 1}).slices.empty());
}

TEST(Trace, RefusesMoreEventsThanItHolds) {
  const Chain chain;
  const StatusOr<ScheduleTrace> trace =
      TraceSchedule(chain.schedule, chain.collective, chain.topology,
                    {.size_bytes = 1000, .segment_bytes = 100}, {.most_events = 19});
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.status().code(), StatusCode::kLimit);
  EXPECT_EQ(trace.status().message(), "the simulation has 20 events; a trace holds at most 19");
}

TEST(Trace, ACompressedScheduleIsTracedPlainOrByItsColumns) {
  Random random(5);
  const Topology topology = MakeGrid("torus", 4, 4, true, 1, 100);
  const Collective all = MakeCollective(CollectiveKind::kAllgather, 16);
  const SymmetryGroup group = TranslationsFor(all, topology);
  ASSERT_GT(group.order(), 1);
  const testing::TranslatedAnswer made =
      testing::Compressed(topology, group, CollectiveKind::kAllgather, 2, random);
  const SimulateOptions options{.size_bytes = 1 << 20};
  const int64_t time_ps = Simulate(made.schedule, made.collective, topology, options).time_ps;
  const ScheduleTrace plain = Traced(made.schedule, made.collective, topology, options);
  EXPECT_EQ(plain.simulation.time_ps, time_ps);
  EXPECT_TRUE(plain.schedule.symmetry.empty());
  EXPECT_EQ(plain.copies, 1);
  const ScheduleTrace columns =
      Traced(made.schedule, made.collective, topology, options, {.most_transfers = 1});
  EXPECT_EQ(columns.simulation.time_ps, time_ps);
  EXPECT_EQ(columns.copies, group.order());
  EXPECT_EQ(std::ssize(columns.hops) * columns.copies, std::ssize(plain.hops));
}

TEST(Trace, NamesTheSlowLink) {
  const Topology topology = MakeGraph("switch", 2, 1, {{0, 2, 10, 100}, {2, 1, 1, 100}});
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 2, Rank(0));
  Schedule schedule;
  schedule.num_chunks = 1;
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), Links({0, 1}), TransferOp::kCopy, 0);
  const ScheduleTrace trace = Traced(schedule, collective, topology, {.size_bytes = 100'000});
  const std::vector<PathShare> shares = SharesOf(trace.critical_path);
  EXPECT_EQ(shares.front(), (PathShare{PathKind::kTransfer, LinkId(1), {}, 100'000'000, 1}));
  EXPECT_EQ(trace.hops[1].start_ps, 100'000);  // cut through
}

}  // namespace
}  // namespace xccl
