#include "synth/forest/forest.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/testing/shared_data.h"
#include "base/units.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"
#include "synth/forest/equal_trees.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr CollectiveKind kServed[] = {CollectiveKind::kAllgather,     CollectiveKind::kAllgatherv,
                                      CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv,
                                      CollectiveKind::kBroadcast,     CollectiveKind::kReduce};

Collective Of(CollectiveKind kind, const std::vector<Rank>& ranks) {
  return Collective::Create(testing::SpecOf(kind, ranks)).value();
}

std::vector<Rank> All(const Topology& topology) {
  std::vector<Rank> ranks;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) ranks.emplace_back(r);
  return ranks;
}

struct Made {
  std::optional<Synthesis> synthesis;
  Bound bound;
  double ratio = 0;       // time ÷ bound
  double load_ratio = 0;  // the busiest link's time for the bytes ÷ bandwidth bound
};

void Make(const Topology& topology, const Collective& collective, std::optional<int32_t> chunks, Made& made,
          int64_t size_bytes = kGiB) {
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  request.size_bytes = size_bytes;
  request.limits.chunks = chunks;
  StatusOr<Synthesis> answer = ForestEngine().Synthesize(request);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  ASSERT_EQ(ToStatus(VerifySchedule(answer->schedule, answer->collective, topology)).message(), "");
  made.synthesis.emplace(std::move(answer).value());
  made.bound = LowerBound(topology, collective, size_bytes, TimeModel::kPipelined).value();
  SimulateOptions options;
  options.size_bytes = size_bytes;
  options.record_links = true;
  const Simulation simulation =
      Simulate(made.synthesis->schedule, made.synthesis->collective, topology, options);
  EXPECT_EQ(simulation.time_ps, made.synthesis->simulation.value_or(Simulation()).time_ps);
  int64_t busiest = 0;
  for (int64_t ps : simulation.link_busy_ps) busiest = std::max(busiest, ps);
  made.ratio = static_cast<double>(simulation.time_ps) / static_cast<double>(made.bound.bound_ps);
  made.load_ratio = made.bound.bandwidth_ps > 0 ? static_cast<double>(busiest) / made.bound.bandwidth_ps : 1;
}

// A machine whose every node has as much bandwidth in as out: random circles through GPUs and switches.
Topology RandomEulerian(uint64_t seed) {
  Random random(seed);
  TopologySpec spec;
  spec.name = fmt::format("circles {}", seed);
  const size_t gpus = 2 + random.Below(6), switches = random.Below(4);
  for (size_t g = 0; g < gpus; ++g) {
    spec.nodes.emplace_back().id = fmt::format("{}", g);
  }
  for (size_t s = 0; s < switches; ++s) {
    spec.nodes.emplace_back().id = fmt::format("s{}", s);
    spec.nodes.back().kind = NodeKind::kSwitch;
  }
  const size_t circles = 2 + random.Below(5);
  for (size_t c = 0; c < circles; ++c) {
    std::vector<NodeId> nodes;
    for (size_t n = 0; n < spec.nodes.size(); ++n)
      if (c == 0 || random.Below(2) == 0) nodes.emplace_back(static_cast<int64_t>(n));
    if (nodes.size() < 2) continue;
    random.Shuffle(std::span(nodes));
    const int64_t bandwidth = static_cast<int64_t>(1 + random.Below(7)) * 10'000'000'000;
    for (size_t n = 0; n < nodes.size(); ++n)
      spec.links.push_back({.from = nodes[n],
                            .to = nodes[(n + 1) % nodes.size()],
                            .bandwidth_bytes_per_s = bandwidth,
                            .latency_ps = 500'000});
  }
  return Topology::Create(std::move(spec)).value();
}

TEST(Forest, MeetsTheCutOnEulerianMachines) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Topology topology = RandomEulerian(seed);
    for (CollectiveKind kind : kServed) {
      SCOPED_TRACE(fmt::format("{}, {}", ToString(kind), topology.name()));
      Made made;
      Make(topology, Of(kind, All(topology)), std::nullopt, made);
      if (HasFatalFailure()) return;
      // The linear program stops within 1e-5 of its bound, and trees of less than 1e-4 of a root's data are
      // left out.
      EXPECT_LE(made.load_ratio, 1 + 1e-4);
    }
  }
}

TEST(Forest, ServesSomeRanksOverTheOthers) {
  for (const testing::Machine& machine : testing::Machines()) {
    for (const std::vector<Rank>& members : testing::MemberLists(machine.topology.num_ranks())) {
      for (CollectiveKind kind : kServed) {
        SCOPED_TRACE(fmt::format("{} of {} ranks, {}", ToString(kind), members.size(), machine.name));
        Made made;
        Make(machine.topology, Of(kind, members), std::nullopt, made, kGiB / 64);
        if (HasFatalFailure()) return;
        // The same, and chunk boundaries at whole elements: of 16 MiB in waves up to 1e-3.
        EXPECT_LE(made.load_ratio, 1 + 1e-3);
      }
    }
  }
}

struct Row {
  std::string_view topology;  // of ../shared/data/graphs, or a short form
  std::optional<int32_t> trees;
  double gb_per_s;  // least algbw; 0: what the bound allows
  double ratio;     // most time ÷ bound
  int32_t depth;    // at most
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.topology; }

class ForestRow : public ::testing::TestWithParam<Row> {};

TEST_P(ForestRow, IsReached) {
  const Row& row = GetParam();
  std::string name(row.topology);
  if (name.ends_with(".xml")) {
    const std::optional<std::string> path = SharedData("data/graphs/" + name);
    if (!path) GTEST_SKIP() << SharedDataMissing("data/graphs/" + name);
    name = *path;
  }
  const StatusOr<Topology> topology = LoadTopology(name);
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  for (CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter}) {
    Made made;
    Make(*topology, Of(kind, All(*topology)), row.trees, made);
    if (HasFatalFailure()) return;
    if (!row.trees) {
      EXPECT_LE(made.load_ratio, 1 + 1e-4) << ToString(kind);
    }
    EXPECT_LE(made.ratio, row.ratio) << ToString(kind);
    const double busy_s = made.load_ratio * made.bound.bandwidth_ps / static_cast<double>(kPsPerSecond);
    EXPECT_GE(static_cast<double>(kGiB) / busy_s / 1e9, row.gb_per_s * (1 - 1e-4)) << ToString(kind);
    if (row.trees) {
      EXPECT_EQ(made.synthesis->collective.num_chunks(), topology->num_ranks() * *row.trees);
    }
    const std::string depth = fmt::format("depth {}", row.depth);
    const std::string& note = made.synthesis->note;
    const size_t at = note.find("depth ");
    ASSERT_NE(at, std::string::npos) << note;
    EXPECT_LE(std::stoi(note.substr(at + 6)), row.depth) << ToString(kind);
  }
}

// The rates are ForestColl's, which are optimal (its dgx1 and mi250x1 have links of 25 and 50 GB/s, these
// GiB/s); for a fixed number of trees the best that it allows.
INSTANTIATE_TEST_SUITE_P(
    Table, ForestRow,
    ::testing::Values(Row{"dgx1.xml", {}, 171.43 * 1.073741824, 1.01, 6},
                      Row{"a100x2.xml", {}, 346.6667, 1.01, 8}, Row{"a100x2.xml", 1, 342.857, 2, 4},
                      Row{"a100x4.xml", {}, 266.6667, 1.01, 3},
                      Row{"mi250x1.xml", {}, 342.857 * 1.073741824, 1.02, 13},
                      Row{"mi250x1.xml", 1, 266.6667 * 1.073741824, 2, 14},
                      Row{"mi250x1.xml", 2, 320 * 1.073741824, 2, 14}, Row{"torus:8x8", {}, 0, 1.01, 8},
                      Row{"torus:4x4", {}, 0, 1.01, 4}, Row{"hypercube:4", {}, 0, 1.01, 4},
                      Row{"nvswitch:32", {}, 0, 1.01, 1}, Row{"full-mesh:16", {}, 0, 1.01, 1},
                      Row{"fat-tree:k=4", {}, 0, 1.01, 4}, Row{"hmesh5x5_50_75.xml", {}, 0, 1.01, 10},
                      Row{"2xtorus4x4_slow4.xml", {}, 0, 1.01, 9},
                      Row{"torus8x8_5failed.xml", {}, 0, 1.01, 14}));

TEST(Forest, SaysWhyItRefuses) {
  const Topology ring = testing::MakeRing(4);
  const auto message = [&](const Topology& topology, CollectiveKind kind, std::optional<int32_t> chunks,
                           std::optional<int32_t> steps, int64_t work) {
    const Collective collective = Of(kind, All(topology));
    SynthesisRequest request;
    request.topology = &topology;
    request.collective = &collective;
    request.limits.chunks = chunks;
    request.limits.steps = steps;
    request.limits.work_units = work;
    const StatusOr<Synthesis> made = ForestEngine().Synthesize(request);
    return made.ok() ? std::string("made") : std::string(made.status().message());
  };
  EXPECT_EQ(message(ring, CollectiveKind::kAlltoall, {}, {}, 0),
            "forest: alltoall is not served; it serves allgather(v), reduce_scatter(v), broadcast, reduce, "
            "allreduce and barrier");
  EXPECT_EQ(message(ring, CollectiveKind::kAllgatherv, 2, {}, 0),
            "forest: --chunks with allgatherv: uneven parts have uneven trees; expected none");
  EXPECT_EQ(message(ring, CollectiveKind::kAllgather, {}, 1, 0),
            "forest: no allgather on 4 ranks in 1 step: rank 2 is 2 links from rank 0; hint: --steps=2");
  const Topology behind = testing::MakeSwitch(4);
  EXPECT_EQ(message(behind, CollectiveKind::kAllreduce, {}, 1, 0),
            "forest: allreduce on test: 4 steps at least were used; at most 1 are allowed; hint: --steps=4");
  EXPECT_EQ(message(behind, CollectiveKind::kBarrier, {}, {}, 0),
            "forest: test: 4 members among 5 nodes; spanning trees need GPUs alone, all of them members");
  EXPECT_EQ(message(behind, CollectiveKind::kAllreduce, 2, {}, 0),
            "forest: test: 4 members among 5 nodes; spanning trees need GPUs alone, all of them members");
  EXPECT_EQ(message(behind, CollectiveKind::kBroadcast, {}, 0, 0),
            "forest: no broadcast on 4 ranks in 0 steps: rank 0 is 1 links from rank 2; hint: --steps=2");
  EXPECT_EQ(message(ring, CollectiveKind::kBroadcast, 1 << 21, {}, 0),
            "forest: 2097152 chunks a part on 4 ranks; at most 1048576; hint: --chunks=1048576");
  EXPECT_EQ(message(ring, CollectiveKind::kAllgather, 1 << 20, {}, 0),
            "forest: 1048576 chunks a part on 4 ranks; at most 262144; hint: --chunks=262144");
  EXPECT_EQ(message(ring, CollectiveKind::kAllgather, {}, {}, 1),
            "forest: the limit of work was reached before a tree was packed");
  EXPECT_EQ(message(ring, CollectiveKind::kAllgather, 1, {}, 4),
            "forest: the limit of work was reached while trees were packed");
  EXPECT_EQ(message(testing::MakeSwitch(4), CollectiveKind::kAllgather, 1, {}, 4),
            "forest: the limit of work was reached while trees were packed");
}

TEST(Forest, KeepsToTheStepsThatAreAskedFor) {
  for (const Topology& topology : {testing::MakeGrid({3, 3}, false), testing::MakeCluster(2, 4)})
    for (CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
                                CollectiveKind::kBroadcast, CollectiveKind::kAllreduce}) {
      const Collective collective = Of(kind, All(topology));
      SynthesisRequest request;
      request.topology = &topology;
      request.collective = &collective;
      request.size_bytes = kGiB;
      const StatusOr<Synthesis> made = ForestEngine().Synthesize(request);
      ASSERT_TRUE(made.ok()) << made.status().message();
      for (int32_t steps = made->schedule.num_steps(); steps > 0; steps = steps * 2 / 3) {
        SCOPED_TRACE(fmt::format("{} on {}: {} steps", collective.name(), topology.name(), steps));
        request.limits.steps = steps;
        const StatusOr<Synthesis> limited = ForestEngine().Synthesize(request);
        if (!limited.ok()) {
          const bool too_far = limited.status().code() == StatusCode::kInfeasible;
          EXPECT_TRUE(too_far || limited.status().code() == StatusCode::kLimit) << limited.status().message();
          EXPECT_LT(steps, 20);
          continue;
        }
        EXPECT_LE(limited->schedule.num_steps(), steps);
        EXPECT_EQ(ToStatus(VerifySchedule(limited->schedule, limited->collective, topology)), OkStatus());
      }
    }
}

// The linear program of all roots would take a minute, for a bound that no plan attains.
TEST(Forest, ALargeMachineWithDamageKeepsItsSpanningTrees) {
  TopologySpec spec = testing::MakeGrid({10, 10}, true).spec();
  spec.links[0].bandwidth_bytes_per_s /= 4;
  const Topology torus = Topology::Create(std::move(spec)).value();
  for (const int64_t size_bytes : {int64_t{1}, int64_t{1} << 26}) {
    Made made;
    Make(torus, Of(CollectiveKind::kAllreduce, All(torus)), std::nullopt, made, size_bytes);
    ASSERT_TRUE(made.synthesis);
    EXPECT_NE(made.synthesis->note.find("spanning trees"), std::string::npos) << made.synthesis->note;
  }
}

// Hosts of two GPUs and a NIC, each faster than the next, all of them behind a switch that reduces. Some
// branches lead back through it, and others start on those.
TEST(Forest, PairsOverSwitchesThatReduceAndDoNotMulticast) {
  TopologySpec spec;
  spec.name = "nics behind switches";
  const auto join = [&](NodeId a, NodeId b, int64_t gb_per_s, int64_t latency_ps) {
    spec.links.push_back({a, b, gb_per_s * 1'000'000'000, latency_ps});
    spec.links.push_back({b, a, gb_per_s * 1'000'000'000, latency_ps});
  };
  std::vector<NodeId> nics;
  for (int32_t h = 0; h < 4; ++h) {
    const HostId host(int64_t{h});
    spec.hosts.push_back({fmt::format("h{}", h)});
    const auto add = [&](NodeKind kind, const char* id) {
      spec.nodes.push_back({kind, id, host});
      return NodeId(static_cast<int64_t>(spec.nodes.size()) - 1);
    };
    const NodeId inside = add(NodeKind::kSwitch, "switch");
    spec.nodes.back().reduce = true;
    const NodeId gpus[] = {add(NodeKind::kGpu, "0"), add(NodeKind::kGpu, "1")};
    nics.push_back(add(NodeKind::kNic, "0"));
    for (const NodeId gpu : gpus) join(gpu, inside, 200, 300'000);
    join(inside, nics.back(), 64, 500'000);
  }
  spec.nodes.push_back({NodeKind::kSwitch, "fabric", {}});
  for (size_t h = 0; h < nics.size(); ++h)
    join(nics[h], NodeId(static_cast<int64_t>(spec.nodes.size()) - 1), 25 - 5 * static_cast<int64_t>(h),
         1'000'000);
  const Topology hosts = Topology::Create(std::move(spec)).value();
  Made made;
  Make(hosts, Of(CollectiveKind::kAllreduce, All(hosts)), std::nullopt, made, kGiB / 16);
}

// Where a message must have come whole before it goes on, k messages take (k + hops - 1) × (bytes / k /
// bandwidth
// + latency): the waves must come near the best k.
TEST(Forest, WavesOfTheBlockingModelAreNeitherTooFewNorTooMany) {
  constexpr int64_t kHops = 4, kBytesPerS = 25'000'000'000, kLatencyPs = 2'000'000;
  TopologySpec spec;
  spec.name = "chain";
  for (int64_t g = 0; g <= kHops; ++g) {
    spec.nodes.emplace_back().id = fmt::format("{}", g);
    if (g > 0) spec.links.push_back({NodeId(g - 1), NodeId(g), kBytesPerS, kLatencyPs});
  }
  const Topology chain = Topology::Create(std::move(spec)).value();
  CollectiveSpec from_the_end = testing::SpecOf(CollectiveKind::kBroadcast, All(chain));
  from_the_end.root = Rank(0);
  const Collective broadcast = Collective::Create(from_the_end).value();
  for (const int64_t size_bytes : {kGiB / 1024, kGiB / 128, kGiB / 16}) {
    SynthesisRequest request;
    request.topology = &chain;
    request.collective = &broadcast;
    request.size_bytes = size_bytes;
    request.model = TimeModel::kBlocking;
    const StatusOr<Synthesis> made = ForestEngine().Synthesize(request);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const double bytes_ps = static_cast<double>(size_bytes) / kBytesPerS * 1e12;
    const double best = std::sqrt(bytes_ps * (kHops - 1) / kLatencyPs);
    const double best_ps = (best + kHops - 1) * (bytes_ps / best + kLatencyPs);
    EXPECT_LE(static_cast<double>(made->simulation->time_ps), 1.06 * best_ps) << size_bytes;
  }
}

TEST(Forest, RootsWithAlmostNothing) {
  const Topology mesh = testing::MakeGrid({2, 4}, false);
  CollectiveSpec spec;
  spec.ranks = All(mesh);
  spec.counts = {1, 100'000'000, 1, 1, 100'000'000, 1, 1, 1};
  for (CollectiveKind kind : {CollectiveKind::kAllgatherv, CollectiveKind::kReduceScatterv}) {
    spec.kind = kind;
    Made made;
    Make(mesh, Collective::Create(spec).value(), std::nullopt, made, kGiB);
    EXPECT_LE(made.ratio, 1.02);
  }
}

// Trees of the first aim are enough for a plan; those of later ones may take more work.
TEST(Forest, EqualTreesOfOneAimAreAPlanWhereLaterOnesUseUpTheWork) {
  int made = 0;
  for (const int32_t ranks : {3, 5, 7}) {
    const Topology machine = testing::MakeSwitch(ranks);
    const Collective allgather = Of(CollectiveKind::kAllgather, All(machine));
    std::vector<PartId> parts;
    for (int32_t p = 0; p < ranks; ++p) parts.emplace_back(p);
    SynthesisRequest request;
    request.topology = &machine;
    request.collective = &allgather;
    request.limits.chunks = 2;
    for (int64_t& work = request.limits.work_units = 16; work <= 640; work += 12) {
      const PackingProblem problem = PlainPacking(machine, All(machine));
      if (!forest::PackEqualTrees(problem, parts, 2, {.first = 2, .last = 2}, work).ok()) continue;
      ++made;
      const StatusOr<Synthesis> synthesis = ForestEngine().Synthesize(request);
      EXPECT_TRUE(synthesis.ok()) << work << ": " << synthesis.status().message();
    }
  }
  EXPECT_GT(made, 0);
}

// Whole trees take work that grows with links and trees, and an allreduce's with ranks too.
TEST(Forest, OffersTheWorkOfWholeTrees) {
  for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kAllreduce}) {
    const auto work = [kind](const Topology& topology) {
      const Collective collective =
          *Collective::Create(testing::SpecOf(kind, AllRanks(topology.num_ranks())));
      const SynthesisRequest request{.topology = &topology, .collective = &collective};
      const StatusOr<Offer> offer = ForestEngine().Offered(request);
      EXPECT_TRUE(offer.ok()) << offer.status().message();
      return offer.ok() ? offer->work : 0;
    };
    const int64_t small = work(testing::MakeGrid({8, 8}, true));
    EXPECT_GT(small, 0);
    EXPECT_GE(work(testing::MakeGrid({16, 16}, true)), 4 * small);
  }
}

TEST(Forest, NothingToMove) {
  const Topology ring = testing::MakeRing(4);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllgatherv;
  spec.ranks = All(ring);
  spec.counts = {0, 0, 0, 0};
  for (const Collective& collective :
       {Collective::Create(spec).value(), Of(CollectiveKind::kAllgather, {Rank(2)}),
        Of(CollectiveKind::kBroadcast, {Rank(2)})}) {
    SynthesisRequest request;
    request.topology = &ring;
    request.collective = &collective;
    const StatusOr<Synthesis> made = ForestEngine().Synthesize(request);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(made->schedule.size(), 0);
    EXPECT_TRUE(made->exact);
    EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, ring)), OkStatus());
  }
}

// The routers of a dragonfly's group are roots that differ. Their trees took seventy times the work that was
// offered, and a GiB.
TEST(Forest, OffersTheWorkOfManyRoots) {
  const Topology topology = *LoadTopology("dragonfly:33x8x10");
  const Collective collective =
      *Collective::Create(testing::SpecOf(CollectiveKind::kAllgather, AllRanks(topology.num_ranks())));
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  const StatusOr<Offer> offer = ForestEngine().Offered(request);
  ASSERT_TRUE(offer.ok()) << offer.status().message();
  EXPECT_GT(offer->work, 300'000);
  EXPECT_GT(offer->bytes, int64_t{10} << 20);
}

}  // namespace
}  // namespace xccl
