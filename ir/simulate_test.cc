#include "ir/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "ir/simulate_reference.h"
#include "ir/test_graphs.h"

namespace xccl {
namespace {

using testing::Edge;
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

// GPUs joined by random links and through two switches; the paths that a transfer may take.
struct Playground {
  Topology topology;
  std::vector<std::vector<LinkId>> paths;
};

Playground RandomPlayground(Random& random) {
  const int32_t gpus = 2 + static_cast<int32_t>(random.Below(4)), nodes = gpus + 2;
  std::vector<Edge> edges;
  const auto add = [&](int32_t from, int32_t to) {
    edges.push_back({from, to, 1 + static_cast<int64_t>(random.Below(4)),
                     static_cast<int64_t>(random.Below(4)) * 100,
                     static_cast<int64_t>(random.Below(3)) * 50});
  };
  for (int32_t a = 0; a < gpus; ++a) {
    for (int32_t b = 0; b < gpus; ++b)
      if (a != b && random.Below(2) == 0) add(a, b);
    add(a, gpus);
    add(gpus + 1, a);
  }
  add(gpus, gpus + 1);
  Playground made{MakeGraph("random", gpus, 2, edges), {}};
  std::vector<LinkId> up(static_cast<size_t>(gpus)), down(static_cast<size_t>(gpus));
  const LinkId middle(made.topology.num_links() - 1);
  for (int32_t l = 0; l < made.topology.num_links(); ++l) {
    const Link& link = made.topology.link(LinkId(l));
    if (link.from.value < gpus && link.to.value < gpus) made.paths.push_back({LinkId(l)});
    if (link.to.value == gpus) up[link.from.index()] = LinkId(l);
    if (link.from.value == nodes - 1) down[link.to.index()] = LinkId(l);
  }
  for (int32_t a = 0; a < gpus; ++a) {
    std::vector<LinkId> multicast = {up[a], middle}, sum;
    for (int32_t b = 0; b < gpus; ++b) {
      if (a == b) continue;
      made.paths.push_back({up[a], middle, down[b]});
      multicast.push_back(down[b]);
      sum.push_back(up[b]);
    }
    made.paths.push_back(multicast);
    sum.push_back(middle);
    sum.push_back(down[a]);
    made.paths.push_back(sum);
  }
  return made;
}

// Timing does not look at what is sent, so any transfers will do; the test of the order in which things land
// is that many write one (rank, chunk).
Schedule RandomSchedule(Random& random, const Playground& playground, int32_t chunks) {
  Schedule schedule;
  schedule.num_chunks = chunks;
  std::vector<Rank> sources, destinations;
  for (int i = 0; i < 12; ++i) {
    const std::vector<LinkId>& path = playground.paths[random.Below(playground.paths.size())];
    PathEnds(playground.topology, path, sources, destinations);
    const int32_t first = static_cast<int32_t>(random.Below(static_cast<uint64_t>(chunks)));
    const int32_t count = 1 + static_cast<int32_t>(random.Below(static_cast<uint64_t>(chunks - first)));
    schedule.Add(ChunkId(first), count, sources[0], destinations[0], path, TransferOp::kReduce,
                 static_cast<int32_t>(random.Below(4)));
  }
  Normalize(schedule);
  return schedule;
}

TEST(Simulate, EqualsTheReference) {
  Random random(7);
  for (int trial = 0; trial < 300; ++trial) {
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
        std::map<int32_t, int64_t> by_message;
        const MessageTable messages = GroupMessages(schedule);
        for (int64_t t = 0; t < schedule.size(); ++t)
          by_message[messages.of_transfer[t]] += 1200 * schedule.count[t];
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

}  // namespace
}  // namespace xccl
