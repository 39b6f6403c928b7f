#include "ir/simulate/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "ir/simulate/random_schedules.h"
#include "ir/simulate/simulate_reference.h"
#include "ir/testing/graphs.h"
#include "ir/testing/schedules.h"

namespace xccl {
namespace {

using testing::Edge;
using testing::Links;
using testing::MakeCollective;
using testing::MakeGraph;
using testing::MakeGrid;
using testing::Playground;
using testing::RandomPlayground;
using testing::RandomSchedule;
using testing::RandomTrees;

Collective Broadcast(int32_t ranks) { return MakeCollective(CollectiveKind::kBroadcast, ranks, Rank(0)); }

int64_t TimeNs(const Schedule& schedule, const Collective& collective, const Topology& topology,
               int64_t bytes, int64_t segment, TimeModel model = TimeModel::kPipelined) {
  SimulateOptions options;
  options.size_bytes = bytes;
  options.model = model;
  options.segment_bytes = segment;
  return Simulate(schedule, collective, topology, options).time_ps / 1000;
}

TEST(Simulate, ChainOfTwoTransfers) {
  // 0 -> 1 -> 2, 1 GB/s, alpha 100 ns: 1000 bytes take 1000 ns a link.
  const Topology topology = MakeGraph("chain", 3, 0, {{0, 1, 1, 100}, {1, 2, 1, 100}});
  const Collective collective = Broadcast(3);
  Schedule schedule;
  schedule.num_chunks = 1;
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 0);
  schedule.Add(ChunkId(0), 1, Rank(1), Rank(2), Links({1}), TransferOp::kCopy, 1);
  EXPECT_EQ(TimeNs(schedule, collective, topology, 1000, 1000), 2 * (1000 + 100));
  EXPECT_EQ(TimeNs(schedule, collective, topology, 1000, 500), 1000 + 500 + 2 * 100);
  EXPECT_EQ(TimeNs(schedule, collective, topology, 1000, 0, TimeModel::kBlocking), 2200);
  EXPECT_EQ(TimeNs(schedule, collective, topology, 1000, 500, TimeModel::kBlocking), 3 * 600);
}

TEST(Simulate, CutThroughASwitch) {
  // 0 -> switch at 1 GB/s, switch -> 1 at 2 GB/s.
  const Topology topology = MakeGraph("switch", 2, 1, {{0, 2, 1, 100, 10}, {2, 1, 2, 50, 20}});
  const Collective collective = Broadcast(2);
  Schedule schedule;
  schedule.num_chunks = 1;
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), Links({0, 1}), TransferOp::kCopy, 0);
  // end(1) = 1010, end(2) = max(100 + 20 + 500, 1110), arrival = 1160.
  EXPECT_EQ(TimeNs(schedule, collective, topology, 1000, 1000), 1160);
  // Store and forward: 1000 + 100 + 10, then 500 + 50 + 20.
  EXPECT_EQ(TimeNs(schedule, collective, topology, 1000, 0, TimeModel::kBlocking), 1110 + 570);
}

TEST(Simulate, OverheadOncePerMessage) {
  const Topology topology = MakeGraph("pair", 2, 0, {{0, 1, 1, 100, 30}});
  const Collective collective = Broadcast(2).WithChunks(4);
  Schedule schedule;
  schedule.num_chunks = 4;
  schedule.Add(ChunkId(0), 2, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 0);  // one message
  schedule.Add(ChunkId(3), 1, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 0);
  schedule.Add(ChunkId(2), 1, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 1);  // another message
  EXPECT_EQ(TimeNs(schedule, collective, topology, 4000, 500), 4000 + 2 * 30 + 100);
  EXPECT_EQ(TimeNs(schedule, collective, topology, 4000, 0, TimeModel::kBlocking), 4000 + 2 * (30 + 100));
}

TEST(Simulate, LinksTakeTheEarliestStepThatIsReady) {
  // 0 -> 1 is fast, 1 -> 2 slow. Rank 1's own chunk of step 5 goes before the chunk of step 1, which has
  // not arrived yet. At 100 ns two chunks wait; the chunk with the earlier step goes first.
  const Topology topology = MakeGraph("line", 3, 0, {{0, 1, 10}, {1, 2, 1}});
  const Collective collective = MakeCollective(CollectiveKind::kAllgather, 3).WithChunks(2);
  Schedule schedule;
  schedule.num_chunks = 6;
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 0);
  schedule.Add(ChunkId(0), 1, Rank(1), Rank(2), Links({1}), TransferOp::kCopy, 1);
  schedule.Add(ChunkId(2), 1, Rank(1), Rank(2), Links({1}), TransferOp::kCopy, 5);
  schedule.Add(ChunkId(3), 1, Rank(1), Rank(2), Links({1}), TransferOp::kCopy, 6);
  SimulateOptions options;
  options.size_bytes = 6 * 960;
  options.segment_bytes = 960;
  options.record_links = true;
  const Simulation simulation = Simulate(schedule, collective, topology, options);
  EXPECT_EQ(simulation.time_ps, 3 * 960'000);
  EXPECT_EQ(simulation.link_busy_ps, (std::vector<int64_t>{96'000, 3 * 960'000}));
  EXPECT_EQ(simulation.size_bytes, 6 * 960);
  EXPECT_EQ(simulation.segment_bytes, 960);
}

TEST(Simulate, ReadsWaitForEveryEarlierWrite) {
  // Rank 2 sums from 0 (fast) and 1 (slow) before it sends on; its transfer of step 0 waits for neither.
  const Topology topology = MakeGraph("sum", 4, 0, {{0, 2, 4}, {1, 2, 1}, {2, 3, 2}});
  const Collective collective = MakeCollective(CollectiveKind::kReduce, 4, Rank(3));
  Schedule schedule;
  schedule.num_chunks = 1;
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(2), Links({0}), TransferOp::kReduce, 0);
  schedule.Add(ChunkId(0), 1, Rank(1), Rank(2), Links({1}), TransferOp::kReduce, 1);
  schedule.Add(ChunkId(0), 1, Rank(2), Rank(3), Links({2}), TransferOp::kReduce, 2);
  EXPECT_EQ(TimeNs(schedule, collective, topology, 1000, 1000), 1000 + 500);
  schedule.step = {0, 0, 0};
  EXPECT_EQ(TimeNs(schedule, collective, topology, 1000, 1000), 1000);
}

TEST(Simulate, MulticastAndSumInASwitch) {
  // 0, 1, 2 around switch 3.
  const Topology topology =
      MakeGraph("star", 3, 1, testing::Duplex({{0, 3, 1, 10}, {1, 3, 2, 20}, {2, 3, 4, 40}}));
  const Collective broadcast = Broadcast(3);
  Schedule multicast;
  multicast.num_chunks = 1;
  multicast.Add(ChunkId(0), 1, Rank(0), Rank(1), Links({0, 3, 5}), TransferOp::kCopy, 0);
  // Up takes 1000 ns; neither link down ends before the bytes arrive, at 1010; the farther rank is 40 away.
  EXPECT_EQ(TimeNs(multicast, broadcast, topology, 1000, 1000), 1010 + 40);
  EXPECT_EQ(TimeNs(multicast, broadcast, topology, 1000, 0, TimeModel::kBlocking), 1010 + 520);
  const Collective reduce = MakeCollective(CollectiveKind::kReduce, 3, Rank(2));
  Schedule sum;
  sum.num_chunks = 1;
  sum.Add(ChunkId(0), 1, Rank(0), Rank(2), Links({0, 2, 5}), TransferOp::kReduce, 0);
  EXPECT_EQ(TimeNs(sum, reduce, topology, 1000, 1000), 1010 + 40);
  EXPECT_EQ(TimeNs(sum, reduce, topology, 1000, 0, TimeModel::kBlocking), 1010 + 290);
}

// Chunks go around a ring of `n` in both directions, each up to half of it.
Schedule RingAllgather(int32_t n, const Topology& topology) {
  Schedule schedule;
  schedule.num_chunks = n;
  for (int32_t step = 0; step < n / 2; ++step) {
    for (int32_t r = 0; r < n; ++r) {
      for (int32_t direction : {1, -1}) {
        if (direction < 0 && step >= (n - 1) / 2) continue;
        const Rank to((r + direction + n) % n);
        for (LinkId l : topology.Out(NodeId(r)))
          if (topology.RankOf(topology.link(l).to) == to)
            schedule.Add(ChunkId((r - direction * step + n) % n), 1, Rank(r), to, std::vector{l},
                         TransferOp::kCopy, step);
      }
    }
  }
  Normalize(schedule);
  return schedule;
}

TEST(Simulate, TacosTimesOfRings) {
  // 1 GiB, 50 GiB/s, 0.5 us: n/2 steps of one chunk.
  const std::vector<std::pair<int32_t, int64_t>> rows = {{8, 10'002'000}, {16, 10'004'000}};
  for (const auto& [n, time_ns] : rows) {
    TopologySpec spec = MakeGrid("ring", 1, n, true).spec();
    for (Link& link : spec.links) {
      link.bandwidth_bytes_per_s = 50LL << 30;
      link.latency_ps = 500'000;
    }
    const Topology topology = Topology::Create(spec).value();
    const Collective allgather = MakeCollective(CollectiveKind::kAllgather, n);
    EXPECT_EQ(TimeNs(RingAllgather(n, topology), allgather, topology, 1LL << 30, 0, TimeModel::kBlocking),
              time_ns);
    // Pipelined, no link is idle before its end; a segment's time is rounded up to a picosecond.
    const int64_t pipelined = TimeNs(RingAllgather(n, topology), allgather, topology, 1LL << 30, 64 << 10);
    EXPECT_GE(pipelined, 10'000'500);
    EXPECT_LE(pipelined, 10'000'508);
  }
}

TEST(Simulate, NothingToMove) {
  const Topology topology = MakeGraph("pair", 2, 0, {{0, 1, 1, 100}});
  EXPECT_EQ(TimeNs(Schedule(), Broadcast(2), topology, 0, 0), 0);
  Schedule schedule;
  schedule.num_chunks = 1;
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), Links({0}), TransferOp::kCopy, 0);
  EXPECT_EQ(TimeNs(schedule, Broadcast(2), topology, 0, 0), 100);
}

// Random trees over random graphs. The simulation runs every segment where that is cheap; beyond four million
// jobs it draws a line.
TEST(Simulate, FewSegmentsAreAllRunAndManyExtrapolated) {
  Random random(11);
  for (int trial = 0; trial < 13; ++trial) {
    const bool is_long = trial == 12;
    const int32_t n = 2 + static_cast<int32_t>(random.Below(6));
    std::vector<Edge> edges;
    const auto add = [&](int32_t a, int32_t b) {
      edges.push_back({a, b, 1 + static_cast<int64_t>(random.Below(12)),
                       static_cast<int64_t>(random.Below(5)) * 500,
                       static_cast<int64_t>(random.Below(2)) * 100});
    };
    for (int32_t r = 0; r < n; ++r) add(r, (r + 1) % n);
    for (int32_t i = 0; i < n; ++i) {
      const int32_t a = static_cast<int32_t>(random.Below(n)), b = static_cast<int32_t>(random.Below(n));
      if (a != b) add(a, b);
    }
    const Topology topology = MakeGraph("random", n, 0, edges);
    const int32_t chunks = 1 + static_cast<int32_t>(random.Below(3));
    const Collective collective = random.Below(2) == 0
                                      ? MakeCollective(CollectiveKind::kAllgather, n).WithChunks(chunks)
                                      : Broadcast(n).WithChunks(chunks);
    const Schedule schedule = RandomTrees(random, topology, collective);
    for (TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
      if (is_long && model == TimeModel::kBlocking) continue;
      SimulateOptions options;
      options.size_bytes = (1 << 24) + static_cast<int64_t>(random.Below(1 << 24));
      if (is_long) options.size_bytes <<= 12;
      options.model = model;
      const int64_t segments = is_long ? 4'200'000 / schedule.size() : 700;
      options.segment_bytes = options.size_bytes / collective.num_chunks() / segments;
      const int64_t extrapolated = Simulate(schedule, collective, topology, options).time_ps;
      options.extrapolate = false;
      const int64_t full = Simulate(schedule, collective, topology, options).time_ps;
      EXPECT_NEAR(static_cast<double>(extrapolated), static_cast<double>(full),
                  is_long ? 1e-3 * static_cast<double>(full) : 0)
          << trial << " " << ToString(model);
    }
  }
}

TEST(DefaultSegmentBytes, GrowsWithWhatNeedsNoPipeline) {
  const Topology topology = MakeGrid("ring", 1, 8, true);
  const Collective allgather = MakeCollective(CollectiveKind::kAllgather, 8);
  // A whole chunk where it is small.
  EXPECT_EQ(DefaultSegmentBytes(RingAllgather(8, topology), allgather, 8 * 4096), 4096);
  // 56 moves of 8 MiB: 64 KiB.
  EXPECT_EQ(DefaultSegmentBytes(RingAllgather(8, topology), allgather, 64 << 20), 64 << 10);
  // 300 ranks on a ring: 89,700 moves, all links busy all the time.
  const Topology large = MakeGrid("ring", 1, 300, true);
  const Collective many = MakeCollective(CollectiveKind::kAllgather, 300);
  EXPECT_EQ(DefaultSegmentBytes(RingAllgather(300, large), many, 300LL << 20), 1 << 20);
}

// Segments of one chunk fill a chain. A rough simulation uses fewer segments and so ends a little later.
TEST(Simulate, RoughlyEndsALittleLater) {
  constexpr int32_t kRanks = 300;
  const Topology topology = MakeGrid("line", 1, kRanks, false);
  const Collective collective = Broadcast(kRanks);
  Schedule schedule;
  schedule.num_chunks = 1;
  for (int32_t r = 0; r + 1 < kRanks; ++r)
    for (LinkId l : topology.Out(NodeId(r)))
      if (topology.RankOf(topology.link(l).to) == Rank(r + 1))
        schedule.Add(ChunkId(0), 1, Rank(r), Rank(r + 1), std::vector{l}, TransferOp::kCopy, r);
  Normalize(schedule);
  struct Case {
    int64_t size_bytes;
    bool coarser;
  };
  for (const Case& each : {Case{1 << 20, false}, {1 << 30, true}}) {
    SimulateOptions options{.size_bytes = each.size_bytes};
    const Simulation fine = Simulate(schedule, collective, topology, options);
    options.rough = true;
    const Simulation rough = Simulate(schedule, collective, topology, options);
    EXPECT_EQ(rough.segment_bytes > fine.segment_bytes, each.coarser);
    EXPECT_EQ(rough.time_ps > fine.time_ps, each.coarser);
    EXPECT_LE(static_cast<double>(rough.time_ps), 1.5 * static_cast<double>(fine.time_ps));
  }
}

TEST(Simulate, EqualsTheReference) {
  Random random(7);
  for (int trial = 0; trial < 100; ++trial) {
    const Playground playground = RandomPlayground(random);
    const int32_t chunks = 1 + static_cast<int32_t>(random.Below(3));
    const Collective collective =
        MakeCollective(CollectiveKind::kAllreduce, playground.topology.num_ranks()).WithChunks(chunks);
    const Schedule schedule = RandomSchedule(random, playground, chunks);
    const int64_t bytes = 1200 * chunks, segments = 1 + static_cast<int64_t>(random.Below(3));
    for (TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
      SCOPED_TRACE(std::to_string(trial) + " " + std::string(ToString(model)));
      // The largest unit decides how many segments there are.
      int64_t largest = 1200;
      if (model == TimeModel::kBlocking) {
        std::map<std::pair<int32_t, PathId>, int64_t> by_message;
        for (int64_t t = 0; t < schedule.size(); ++t)
          by_message[{schedule.step[t], schedule.path[t]}] += 1200 * schedule.count[t];
        for (const auto& [message, total] : by_message) largest = std::max(largest, total);
      }
      SimulateOptions options;
      options.size_bytes = bytes;
      options.model = model;
      options.segment_bytes = (largest + segments - 1) / segments;
      testing::ReferenceSimulator reference(schedule, collective, playground.topology, bytes, model,
                                            segments);
      EXPECT_EQ(Simulate(schedule, collective, playground.topology, options).time_ps, reference.Run());
    }
  }
}

// Chunk 0 follows chunk 1 on the first link and goes on over the second: 1 GB/s, 100 ns, 1000 bytes each.
TEST(SimulateMoves, SaysWhenEachMoveStartsAndArrives) {
  TopologySpec spec;
  for (const char* id : {"0", "1", "2"})
    spec.nodes.push_back({NodeKind::kGpu, id, std::nullopt, false, false});
  for (int32_t i = 0; i < 2; ++i) spec.links.push_back({NodeId(i), NodeId(i + 1), 1'000'000'000, 100'000, 0});
  const Topology topology = Topology::Create(spec).value();
  CollectiveSpec wanted;
  wanted.kind = CollectiveKind::kBroadcast;
  wanted.ranks = {Rank(0), Rank(1), Rank(2)};
  wanted.root = Rank(0);
  const Collective collective = Collective::Create(wanted).value().WithChunks(2);
  Schedule schedule;
  schedule.num_chunks = 2;
  schedule.Add(ChunkId(1), 1, Rank(0), Rank(1), std::vector<LinkId>{LinkId(0)}, TransferOp::kCopy, 0);
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), std::vector<LinkId>{LinkId(0)}, TransferOp::kCopy, 1);
  schedule.Add(ChunkId(0), 2, Rank(1), Rank(2), std::vector<LinkId>{LinkId(1)}, TransferOp::kCopy, 2);
  Normalize(schedule);
  const MoveTimes times = SimulateMoves(schedule, collective, topology, 2000);
  // Chunk 1 arrives first, and its link serves it first, though chunk 0 comes before it in the message.
  EXPECT_EQ(times.start_ps, std::vector<int64_t>({0, 1'000'000, 2'100'000, 1'100'000}));
  EXPECT_EQ(times.arrival_ps, std::vector<int64_t>({1'100'000, 2'100'000, 3'200'000, 2'200'000}));
}

// Two chains that share no link, with parts of different sizes: each part is done as if it were alone.
TEST(Simulate, PartsAreDoneByThemselves) {
  const Topology topology = MakeGraph("two lines", 4, 0, testing::Duplex({{0, 1, 1}, {2, 3, 1}}));
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kSendrecv;
  spec.ranks = {Rank(0), Rank(1), Rank(2), Rank(3)};
  spec.pairs = {{Rank(0), Rank(1)}, {Rank(2), Rank(3)}, {Rank(1), Rank(1)}};
  const Collective collective = Collective::Create(spec).value().WithChunks(2);
  Schedule schedule;
  schedule.num_chunks = 6;
  schedule.Add(ChunkId(0), 2, Rank(0), Rank(1), std::vector{LinkId(0)}, TransferOp::kCopy, 0);
  schedule.Add(ChunkId(2), 1, Rank(2), Rank(3), std::vector{LinkId(2)}, TransferOp::kCopy, 0);
  Normalize(schedule);
  for (TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
    SimulateOptions options;
    options.size_bytes = 64 << 20;
    options.model = model;
    options.record_parts = true;
    const Simulation simulation = Simulate(schedule, collective, topology, options);
    ASSERT_EQ(simulation.part_done_ps.size(), 3u);
    EXPECT_EQ(simulation.part_done_ps[0], simulation.time_ps);
    EXPECT_NEAR(static_cast<double>(simulation.part_done_ps[1]), static_cast<double>(simulation.time_ps) / 2,
                1e6);
    EXPECT_EQ(simulation.part_done_ps[2], 0);
  }
}

// Three GPUs, 0 and 1 behind switch 3, which has a slow neighbour, switch 4.
TEST(Simulate, WhatCannotBeDoneIsSaidAndNotRun) {
  const Topology topology = MakeGraph("switches", 3, 2, testing::Duplex({{0, 3}, {3, 1}, {3, 4}, {0, 2}}));
  const auto link = [](int32_t l) { return LinkId(l); };
  const LinkId to_switch = link(0), from_switch = link(2), aside = link(4), back = link(5), to_2 = link(6),
               from_2 = link(7), from_1 = link(3), to_0 = link(1);
  struct Move {
    int32_t first, count;
    std::vector<LinkId> path;
    int32_t step;
  };
  const struct {
    const char* unsound;
    std::vector<Move> moves;
  } cases[] = {
      {"", {{0, 1, {to_switch, from_switch}, 0}, {0, 1, {to_2}, 0}}},
      {"step 0: rank 2 sends chunk 0, which it does not hold",
       {{0, 1, {from_2}, 0}, {0, 1, {to_switch, from_switch}, 0}, {0, 1, {to_2}, 0}}},
      {"step 1: rank 1 sends chunk 0, which it does not hold",
       {{0, 1, {to_2}, 0}, {0, 1, {from_1, to_0}, 1}, {0, 1, {to_switch, from_switch}, 1}}},
      {"path 0 is no chain or tree of links",
       {{0, 1, {to_switch, aside, back, from_switch}, 0}, {0, 1, {to_2}, 0}}},
      {"path 0 ends at no GPU", {{0, 1, {to_switch, aside}, 0}, {0, 1, {to_2}, 0}}},
      {"path 0 is no chain or tree of links", {{0, 1, {from_switch}, 0}, {0, 1, {to_2}, 0}}},
      {"path 0: no link 99", {{0, 1, {link(99)}, 0}}},
      {"transfer 0: chunks 0 to 1; expected some of 0 to 0", {{0, 2, {to_2}, 0}}},
      {"transfer 1: its step 0 comes after a later one",
       {{0, 1, {to_switch, from_switch}, 1}, {0, 1, {to_2}, 0}}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.unsound);
    Schedule schedule;
    schedule.num_chunks = 1;
    for (const Move& move : c.moves)
      schedule.Add(ChunkId(move.first), move.count, Rank(0), Rank(1), move.path, TransferOp::kCopy,
                   move.step);
    for (TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
      SimulateOptions options;
      options.model = model;
      const Simulation simulation = Simulate(schedule, Broadcast(3), topology, options);
      EXPECT_EQ(simulation.unsound, c.unsound);
      EXPECT_EQ(simulation.time_ps >= kForeverPs, *c.unsound != '\0');
    }
  }
}

}  // namespace
}  // namespace xccl
