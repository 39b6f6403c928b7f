#include "ir/simulate.h"

#include <gtest/gtest.h>

#include <vector>

#include "ir/test_graphs.h"

namespace xccl {
namespace {

using testing::Links;
using testing::MakeCollective;
using testing::MakeGraph;

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

}  // namespace
}  // namespace xccl
