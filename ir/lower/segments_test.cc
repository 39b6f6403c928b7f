#include "ir/lower/segments.h"

#include <gtest/gtest.h>

#include "base/deadline.h"
#include "ir/lower/testing/line.h"
#include "ir/machine_model.h"
#include "ir/simulate/simulate_program.h"
#include "ir/tolerance.h"

namespace xccl::lowering {
namespace {

constexpr int64_t kMiB = 1 << 20;

struct Set {
  int32_t instances;
  int64_t segment_bytes;
  Protocol protocol;
  bool operator==(const Set&) const = default;
};

Set SetOn(Segments segments, int64_t size_bytes, int32_t most_blocks) {
  const BlockLimits blocks = {most_blocks, most_blocks};
  Program program = LineProgram();
  const Collective collective = LineCollective();
  const Topology topology = Line();
  const StatusOr<std::optional<int64_t>> time_ps =
      SetSegments(segments, collective, topology, LineMoves().moves, {.size_bytes = size_bytes}, blocks,
                  nullptr, program);
  EXPECT_TRUE(time_ps.ok()) << time_ps.status().message();
  EXPECT_EQ(time_ps->has_value(), segments == Segments::kTimed);
  if (*time_ps) {
    const SimulateOptions timing{.size_bytes = size_bytes};
    const StatusOr<int64_t> more_ps =
        MoreSegments(collective, topology, LineMoves().moves, timing, blocks, **time_ps, false, program);
    EXPECT_TRUE(more_ps.ok()) << more_ps.status().message();
    EXPECT_LE(*more_ps, **time_ps);
    EXPECT_EQ(*more_ps, SimulateProgram(program, collective, topology, timing).value().time_ps);
    const StatusOr<int64_t> fewer_ps =
        FewerSegments(collective, topology, LineMoves().moves, timing, blocks, *more_ps, program);
    EXPECT_TRUE(fewer_ps.ok()) << fewer_ps.status().message();
    EXPECT_TRUE(IsWithinTolerance(*fewer_ps, *more_ps));
    EXPECT_EQ(*fewer_ps, SimulateProgram(program, collective, topology, timing).value().time_ps);
  }
  return {program.instances, program.segment_bytes, program.protocol};
}

TEST(Segments, AWholeProgramMakesOnePass) {
  EXPECT_EQ(SetOn(Segments::kWhole, 64 * kMiB, 2), (Set{1, 0, Protocol::kSimple}));
}

// The middle is 4 instances with 8 passes, of chunks of half the size. A rank has two threadblocks.
TEST(Segments, TheMiddleIsTakenAsFarAsItIsAllowed) {
  EXPECT_EQ(SetOn(Segments::kMiddle, 64 * kMiB, 8), (Set{4, 4 * kMiB, Protocol::kSimple}));
  EXPECT_EQ(SetOn(Segments::kMiddle, 64 * kMiB, 4), (Set{2, 8 * kMiB, Protocol::kSimple}));
  EXPECT_EQ(SetOn(Segments::kMiddle, 64 * kMiB, 2), (Set{1, 0, Protocol::kSimple}));
  // An instance sends at least 512 KiB over a connection.
  EXPECT_EQ(SetOn(Segments::kMiddle, kMiB, 512), (Set{2, kMiB / 8, Protocol::kSimple}));
  EXPECT_EQ(SetOn(Segments::kMiddle, kMiB / 2, 512), (Set{1, 0, Protocol::kSimple}));
}

// A segment of a small chunk would be below 4 KiB. A large chunk is cut into 128 segments, which are about as
// fast as 1024.
TEST(Segments, TimeDecides) {
  EXPECT_EQ(SetOn(Segments::kTimed, 4096, 512), (Set{1, 0, Protocol::kSimple}));
  EXPECT_EQ(SetOn(Segments::kTimed, 64 * kMiB, 512), (Set{1, kMiB / 4, Protocol::kSimple}));
}

// An overhead makes 64 passes as slow as 4, and 16 faster than both.
TEST(Segments, FewerAreComparedWithTheFastestSoFar) {
  TopologySpec spec = Line().spec();
  for (Link& link : spec.links) link.overhead_ps = 64 * kMiB * 1000 / 256;
  const Topology topology = Topology::Create(spec).value();
  const SimulateOptions timing{.size_bytes = 64 * kMiB};
  const auto time_of = [&](int64_t passes) {
    Program program = LineProgram();
    program.segment_bytes = 32 * kMiB / passes;
    return SimulateProgram(program, LineCollective(), topology, timing).value().time_ps;
  };
  ASSERT_TRUE(IsWithinTolerance(time_of(4), time_of(64)));
  ASSERT_FALSE(IsWithinTolerance(time_of(4), time_of(16)));
  Program program = LineProgram();
  program.segment_bytes = kMiB / 2;
  const StatusOr<int64_t> time_ps =
      FewerSegments(LineCollective(), topology, LineMoves().moves, timing, {512, 512}, time_of(64), program);
  ASSERT_TRUE(time_ps.ok()) << time_ps.status().message();
  EXPECT_EQ(program.segment_bytes, 2 * kMiB);
  EXPECT_EQ(*time_ps, time_of(16));
}

// LL128's lines would be torn on the way through a CPU.
TEST(Segments, Ll128IsForLinksOfGpusOnly) {
  MachineModel machine;
  for (ProtocolCost& cost : machine.protocols) cost.hop_ps = 1'000'000'000;
  machine.protocols[static_cast<size_t>(Protocol::kLl128)].hop_ps = 0;
  TopologySpec spec = Line().spec();
  const NodeId cpu(static_cast<int64_t>(spec.nodes.size()));
  Node& node = spec.nodes.emplace_back(spec.nodes[0]);
  node.kind = NodeKind::kCpu;
  const LinkId up(static_cast<int64_t>(spec.links.size())), down(up.value + 1);
  Link to_cpu = spec.links[0], from_cpu = spec.links[0];
  to_cpu.to = from_cpu.from = cpu;
  spec.links.insert(spec.links.end(), {to_cpu, from_cpu});
  const Topology topology = Topology::Create(spec).value();
  for (const bool through_cpu : {false, true}) {
    Program program = LineProgram();
    if (through_cpu) program.connections[0].path = {up, down};
    ASSERT_TRUE(SetSegments(Segments::kTimed, LineCollective(), topology, LineMoves().moves,
                            {.size_bytes = 4096, .machine = &machine}, {512, 512}, nullptr, program)
                    .ok());
    EXPECT_EQ(program.protocol, through_cpu ? Protocol::kSimple : Protocol::kLl128);
  }
}

TEST(Segments, RefuseTooManyThreadblocks) {
  for (const Segments segments : {Segments::kTimed, Segments::kMiddle, Segments::kWhole}) {
    Program program = LineProgram();
    EXPECT_EQ(SetSegments(segments, LineCollective(), Line(), LineMoves().moves, {}, {1, 1}, nullptr, program)
                  .status(),
              InvalidInput("lower: 2 threadblocks on a rank; expected at most 1; hint: --max-ctas=2"));
  }
}

TEST(Segments, ALateSearchKeepsTheProgramThatItHas) {
  const SimulateOptions late{.size_bytes = 64 * kMiB, .deadline = Deadline(0)};
  Program program = LineProgram();
  program.segment_bytes = kMiB;
  const Program before = program;
  const BlockLimits blocks = {512, 512};
  EXPECT_EQ(SetSegments(Segments::kTimed, LineCollective(), Line(), LineMoves().moves, late, blocks, nullptr,
                        program)
                .status(),
            LimitReached("--time-limit=0s passed while the program was simulated"));
  program = before;
  EXPECT_EQ(
      MoreSegments(LineCollective(), Line(), LineMoves().moves, late, blocks, 1000, false, program).value(),
      1000);
  EXPECT_EQ(program, before);
  EXPECT_EQ(FewerSegments(LineCollective(), Line(), LineMoves().moves, late, blocks, 1000, program).value(),
            1000);
  EXPECT_EQ(program, before);
}

TEST(Segments, TheLargestChunkCounts) {
  const Collective collective =
      testing::MakeCollective(CollectiveKind::kBroadcast, 2, Rank(0)).WithWeights({{1, 3}});
  EXPECT_EQ(CollectiveSizes(collective, 400).LargestChunkBytes(), 300);
}

}  // namespace
}  // namespace xccl::lowering
