// The greedy engine, starting from a plan of another engine.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/phases.h"
#include "synth/common/synthesizer.h"
#include "synth/engines.h"
#include "synth/greedy/improve.h"
#include "topologies/load/load.h"
#include "topologies/paths.h"

namespace xccl {
namespace {

Collective All(CollectiveKind kind, int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(ranks);
  if (kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce) spec.root = Rank(1);
  return Collective::Create(spec).value();
}

int64_t TimeOf(const Synthesis& made, const SynthesisRequest& request) {
  return Simulate(made.schedule, made.collective, *request.topology,
                  {.size_bytes = request.size_bytes, .model = request.model})
      .time_ps;
}

TEST(GreedyFrom, IsNeverSlowerThanThePlanItStartsFromAndKeepsItsChunks) {
  const Engine& greedy = *FindEngine("greedy").value();
  int improved = 0, kept = 0;
  for (const char* machine : {"torus:3x3", "mesh:2x4", "dgx1", "nvswitch:4", "rail-2", "ring:6"}) {
    const Topology topology = LoadTopology(machine).value();
    for (const CollectiveKind kind :
         {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
          CollectiveKind::kReduce, CollectiveKind::kAllreduce, CollectiveKind::kAlltoall}) {
      const Collective whole = All(kind, topology.num_ranks());
      for (const char* engine : {"ring", "direct", "tree", "bfb"}) {
        for (const TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
          SCOPED_TRACE(std::string(machine) + " " + std::string(ToString(kind)) + " " + engine);
          SynthesisRequest request{
              .topology = &topology, .collective = &whole, .size_bytes = 1 << 20, .model = model};
          request.limits.work_units = 200'000;
          const StatusOr<Synthesis> start = FindEngine(engine).value()->Synthesize(request);
          if (!start.ok()) continue;
          request.start = std::make_shared<const Synthesis>(*start);
          const StatusOr<Synthesis> made = greedy.Synthesize(request);
          ASSERT_TRUE(made.ok()) << made.status().message();
          EXPECT_EQ(made->collective, start->collective);
          ASSERT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)).message(), "");
          const int64_t before = TimeOf(*start, request), after = TimeOf(*made, request);
          EXPECT_LE(after, before);
          ++(after < before ? improved : kept);
        }
      }
    }
  }
  EXPECT_GT(improved, 40);
  EXPECT_GT(kept, 40);
}

TEST(GreedyFrom, ImprovesASumInTheOrderOfItsLinks) {
  const Topology topology = LoadTopology("mesh:3x3").value();
  const Collective whole = All(CollectiveKind::kReduceScatter, 9);
  SynthesisRequest request{.topology = &topology, .collective = &whole, .size_bytes = 9 << 20};
  const Synthesis start = FindEngine("direct").value()->Synthesize(request).value();
  request.start = std::make_shared<const Synthesis>(start);
  const Synthesis made = FindEngine("greedy").value()->Synthesize(request).value();
  EXPECT_LT(TimeOf(made, request), TimeOf(start, request));
}

// Three GPUs behind one NIC: the NIC's link is full only after thousands of segments, beyond those that are
// run.
TEST(GreedyFrom, NoExtrapolatedTimeIsBelowTheBound) {
  TopologySpec spec;
  spec.name = "two hosts";
  const auto add = [&](NodeKind kind, const char* id) {
    spec.nodes.push_back({kind, id, {}});
    return NodeId(static_cast<int64_t>(spec.nodes.size()) - 1);
  };
  const auto join = [&](NodeId a, NodeId b, int64_t mb_per_s, int64_t latency_ns) {
    spec.links.push_back({a, b, mb_per_s * 1'000'000, latency_ns * 1000});
    spec.links.push_back({b, a, mb_per_s * 1'000'000, latency_ns * 1000});
  };
  const NodeId fabric = add(NodeKind::kSwitch, "fabric"), left = add(NodeKind::kSwitch, "left");
  for (const int64_t mb_per_s : {12'500, 25'000, 50'000}) {
    const NodeId gpu = add(NodeKind::kGpu, ""), nic = add(NodeKind::kNic, "");
    join(gpu, left, 300'000, 350);
    join(gpu, nic, 25'000, 600);
    join(nic, fabric, mb_per_s, 1300);
  }
  const NodeId right = add(NodeKind::kSwitch, "right"), only = add(NodeKind::kNic, "");
  for (const int64_t mb_per_s : {450'000, 25'000, 450'000}) {
    const NodeId gpu = add(NodeKind::kGpu, "");
    join(gpu, right, mb_per_s, 350);
    if (only.value + 1 == gpu.value) join(gpu, only, 25'000, 600);
  }
  join(only, fabric, 25'000, 1300);
  for (size_t n = 0; n < spec.nodes.size(); ++n) spec.nodes[n].id = std::to_string(n);
  const Topology hosts = Topology::Create(std::move(spec)).value();
  CollectiveSpec scatter;
  scatter.kind = CollectiveKind::kScatter;
  scatter.ranks = AllRanks(6);
  scatter.root = Rank(0);
  const Collective whole = Collective::Create(scatter).value();
  SynthesisRequest request{.topology = &hosts, .collective = &whole, .size_bytes = int64_t{1} << 31};
  const Synthesis start = FindEngine("flow").value()->Synthesize(request).value();
  request.start = std::make_shared<const Synthesis>(start);
  const Synthesis made = FindEngine("greedy").value()->Synthesize(request).value();
  EXPECT_GE(TimeOf(made, request), BoundOf(request).value().bound_ps);
}

// Local search accepts copies over direct links of which no rank gets two, or one of what it holds: backwards
// that would be a part counted twice. Everything else is left to greedy's own search.
TEST(GreedyFrom, ImprovesOnlyWhatLocalSearchTakes) {
  const Topology mesh = LoadTopology("full-mesh:3").value();
  const Topology star = LoadTopology("nvswitch:3").value();
  struct Case {
    const char* name;
    const Topology& topology;
    std::optional<int32_t> also_to;  // rank 2 sends the chunk to this rank
    bool taken;
  };
  for (const Case& c :
       {Case{"once", mesh, {}, true}, Case{"twice", mesh, 0, false}, Case{"back to the root", mesh, 1, false},
        Case{"through a switch", star, {}, false}}) {
    const Collective collective = All(CollectiveKind::kBroadcast, 3);
    Schedule schedule;
    schedule.num_chunks = 1;
    const auto send = [&](int32_t from, int32_t to, int32_t step) {
      const NeighbourTable neighbours = GpuNeighbours(c.topology);
      schedule.Add(ChunkId(0), 1, Rank(from), Rank(to),
                   neighbours.Find(static_cast<size_t>(from), Rank(to))->path, TransferOp::kCopy, step);
    };
    send(1, 0, 0);
    send(0, 2, 1);
    if (c.also_to) send(2, *c.also_to, 2);
    Normalize(schedule);
    ASSERT_EQ(ToStatus(VerifySchedule(schedule, collective, c.topology)).message(), "") << c.name;
    const Phases phases =
        MakePhases(c.topology, c.topology, collective, 1 << 20, TimeModel::kPipelined, SumAt::kEach).value();
    const std::optional<Schedule> improved =
        greedy::ImproveSchedule(phases.spread, schedule, {.seed = 0, .goal_ps = 0, .work = 10'000});
    ASSERT_EQ(improved.has_value(), c.taken) << c.name;
    if (!improved) continue;
    EXPECT_EQ(ToStatus(VerifySchedule(*improved, collective, c.topology)).message(), "") << c.name;
  }
}

}  // namespace
}  // namespace xccl
