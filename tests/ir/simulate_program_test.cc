#include "ir/simulate/simulate_program.h"

#include <gtest/gtest.h>

#include "ir/lower/testing/checked.h"
#include "ir/testing/programs.h"
#include "ir/time_model.h"

namespace xccl {
namespace {

// Links of 50 GB/s and 500 ns: a megabyte (10^6) takes 20 us.
constexpr int64_t kMegabyte = 1'000'000;
constexpr int64_t kUs = 1'000'000;

Program Lowered(const Collective& collective, const Topology& topology, Algorithm algorithm, int64_t segment,
                int32_t instances = 1) {
  Program program =
      LowerChecked(*HandSchedule(algorithm, collective, topology), collective, topology).value();
  program.segment_bytes = segment;
  program.slots = 16;  // enough for the messages in flight during a latency
  program.instances = instances;
  return program;
}

int64_t TimePs(const Program& program, const Collective& collective, const Topology& topology, int64_t size,
               TimeModel model = TimeModel::kPipelined) {
  SimulateOptions options;
  options.size_bytes = size;
  options.model = model;
  const StatusOr<Simulation> simulation = SimulateProgram(program, collective, topology, options);
  EXPECT_TRUE(simulation.ok()) << simulation.status().message();
  return simulation.ok() ? simulation->time_ps : -1;
}

TEST(SimulateProgram, OneSendTakesItsTimeOnTheLink) {
  const Topology topology = FullMesh(2);
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 2);
  const Program program = Lowered(collective, topology, Algorithm::kDirect, 0);
  EXPECT_EQ(TimePs(program, collective, topology, kMegabyte), 20 * kUs + kUs / 2);
  EXPECT_EQ(TimePs(program, collective, topology, kMegabyte, TimeModel::kBlocking), 20 * kUs + kUs / 2);
  // Four passes follow one another on the link.
  Program four = program;
  four.segment_bytes = kMegabyte / 4;
  EXPECT_EQ(TimePs(four, collective, topology, kMegabyte), 20 * kUs + kUs / 2);
}

TEST(SimulateProgram, SwitchesAreCutThroughOrStoreAndForward) {
  const Topology topology = OneSwitch(2);
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 2);
  const Program program = Lowered(collective, topology, Algorithm::kDirect, 0);
  EXPECT_EQ(TimePs(program, collective, topology, kMegabyte), 20 * kUs + kUs);
  EXPECT_EQ(TimePs(program, collective, topology, kMegabyte, TimeModel::kBlocking), 41 * kUs);
}

// On a chain of three links, K passes take the time of K + 2 passes and three latencies.
TEST(SimulateProgram, PassesFillAPipeline) {
  const Topology topology = FullMesh(4);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kBroadcast;
  spec.ranks = {Rank(0), Rank(1), Rank(2), Rank(3)};
  spec.root = Rank(0);
  const Collective collective = Collective::Create(spec).value();
  for (int64_t passes : {1, 2, 10}) {
    const Program program = Lowered(collective, topology, Algorithm::kRing, kMegabyte / passes);
    EXPECT_EQ(TimePs(program, collective, topology, kMegabyte),
              20 * kUs * (passes + 2) / passes + 3 * kUs / 2)
        << passes;
  }
}

// Only some passes are simulated; the time of all passes is extrapolated linearly.
TEST(SimulateProgram, ManyPassesAreExtrapolated) {
  const Topology topology = FullMesh(4);
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 4);
  const int64_t size = kMegabyte * 5000, passes = 1'250'000;
  const Program program = Lowered(collective, topology, Algorithm::kRing, size / passes);
  const double expected =
      20e6 * 5000 * (static_cast<double>(passes) + 2) / static_cast<double>(passes) + 1.5e6;
  EXPECT_NEAR(static_cast<double>(TimePs(program, collective, topology, size)), expected, expected * 1e-4);
}

// With one threadblock that forwards, the link is idle for a latency in every step; two instances hide it.
// 40 passes are all simulated; 100,000 are extrapolated.
TEST(SimulateProgram, AProgramThatTakesTooLongIsLeft) {
  const Topology topology = FullMesh(4);
  const Collective collective = MakeCollective(CollectiveKind::kAllgather, 4);
  for (const int64_t passes : {1, 40, 100'000}) {
    const Program program = Lowered(collective, topology, Algorithm::kRing, 1'000'000);
    SimulateOptions options;
    options.size_bytes = 4 * passes * 1'000'000;
    const int64_t time_ps = SimulateProgram(program, collective, topology, options).value().time_ps;
    for (const int64_t longest_ps : {int64_t{0}, time_ps / 4}) {
      options.longest_ps = longest_ps;
      EXPECT_GE(SimulateProgram(program, collective, topology, options).value().time_ps, kForeverPs)
          << passes << " passes, " << longest_ps;
    }
    options.longest_ps = time_ps;
    EXPECT_EQ(SimulateProgram(program, collective, topology, options).value().time_ps, time_ps) << passes;
  }
}

TEST(SimulateProgram, InstancesHideLatency) {
  const Topology topology = FullMesh(4);
  const Collective collective = MakeCollective(CollectiveKind::kAllgather, 4);
  const int64_t size = 4 * kMegabyte;
  EXPECT_EQ(TimePs(Lowered(collective, topology, Algorithm::kRing, 0), collective, topology, size),
            3 * (20 * kUs + kUs / 2));
  EXPECT_EQ(
      TimePs(Lowered(collective, topology, Algorithm::kRing, kMegabyte / 2, 2), collective, topology, size),
      60 * kUs + kUs / 2);
}

// On a chain, a message takes 2 us per link and half a microsecond to arrive. Its slot becomes free when it
// has been forwarded. With two slots, two messages pass in 4.5 us.
TEST(SimulateProgram, ASlotIsFreeWhenItsMessageWasTaken) {
  const Topology topology = FullMesh(3);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kBroadcast;
  spec.ranks = {Rank(0), Rank(1), Rank(2)};
  spec.root = Rank(0);
  const Collective collective = Collective::Create(spec).value();
  Program program = Lowered(collective, topology, Algorithm::kRing, kMegabyte / 10);
  EXPECT_EQ(TimePs(program, collective, topology, kMegabyte), 23 * kUs);
  program.slots = 2;
  EXPECT_EQ(TimePs(program, collective, topology, kMegabyte), 25 * kUs);
}

// Slices are whole units of 16 bytes, so shorter segments make no more passes. Latency makes each pass cost
// time here, since two slots wait for their receiver.
TEST(SimulateProgram, SegmentsBelowTheAlignmentTakeNoEmptyPasses) {
  const Topology topology = FullMesh(3);
  const Collective collective = MakeCollective(CollectiveKind::kReduce, 3);
  Program program = Lowered(collective, topology, Algorithm::kTree, 1);
  program.slots = 2;
  Program aligned = program;
  aligned.segment_bytes = 16;
  int64_t before = 0;
  // The last size has too many passes for each to be simulated.
  for (const int64_t size : {16, 60, 4096, 65536, 66560, 131072, 8 << 20}) {
    EXPECT_EQ(NumPasses(program, CollectiveSizes(collective, size)), (size + 15) / 16);
    const int64_t time_ps = TimePs(program, collective, topology, size);
    EXPECT_EQ(time_ps, TimePs(aligned, collective, topology, size)) << size;
    EXPECT_GE(time_ps, before) << size;
    EXPECT_LE(time_ps, before + kUs + (size + 15) / 16 * kUs) << size;
    before = time_ps;
  }
}

// One threadblock waits in every pass for another, which many messages wake in between. The test is small: it
// runs out of time where a threadblock is listed once for each of them.
TEST(SimulateProgram, WaitingThreadblocksAreListedOnce) {
  const Topology topology = FullMesh(3);
  const Collective collective = MakeCollective(CollectiveKind::kReduce, 3);
  Program program = Lowered(collective, topology, Algorithm::kDirect, 16);
  program.slots = 1024;
  for (const TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking})
    for (const int64_t size : {kMegabyte, kMegabyte - 1000})
      EXPECT_GE(TimePs(program, collective, topology, size, model), size * 20);
}

TEST(SimulateProgram, SaysWhatCannotBeTimed) {
  const Topology topology = FullMesh(3);
  const Collective collective = MakeCollective(CollectiveKind::kAllgather, 3);
  const Program good = Lowered(collective, topology, Algorithm::kRing, 0);
  const auto message = [&](auto spoil) {
    Program program = good;
    spoil(program);
    return SimulateProgram(program, collective, topology, {}).status().message();
  };
  EXPECT_EQ(
      message([](Program& p) { p.slots = 1; }),
      "rank 0 threadblock 0 instruction 1 of pass 0: can never go on; expected a program that verifies");
}

}  // namespace
}  // namespace xccl
