// Plans of levels on small symmetric clusters, compressed and written out; the levels themselves; refusals.
#include "synth/levels/levels.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulation_runs.h"
#include "ir/translated.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"
#include "synth/levels/levels_engine.h"
#include "synth/levels/send.h"
#include "topologies/load/load.h"
#include "topologies/turned_switches.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

using testing::SpecOf;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
                                     CollectiveKind::kAllreduce, CollectiveKind::kAlltoall};
constexpr const char* kClusters[] = {"nvswitch:6",   "leaf-spine:4x4x4", "leaf-spine:3x2x4",
                                     "fat-tree:k=4", "fat-tree:k=6",     "fat-tree:rails=4,hosts=6",
                                     "full-mesh:5",  "rail-2",           "rail-4",
                                     "rail-8"};

// Routers of a group are of different kinds. Their hosts are alike, and so are the groups.
constexpr const char* kOfFewKinds[] = {"dragonfly:7x3x2", "dragonfly:9x4x2"};

SynthesisRequest RequestFor(const Topology& topology, const Collective& collective, int64_t size_bytes) {
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  request.size_bytes = size_bytes;
  return request;
}

TEST(Levels, PlansAreRight) {
  std::vector<const char*> names(std::begin(kClusters), std::end(kClusters));
  names.insert(names.end(), std::begin(kOfFewKinds), std::end(kOfFewKinds));
  for (const char* name : names) {
    const Topology topology = *LoadTopology(name);
    for (const CollectiveKind kind : kKinds) {
      const Collective collective = *Collective::Create(SpecOf(kind, AllRanks(topology.num_ranks())));
      for (const int32_t chunks : {0, 1, 3}) {
        for (const int64_t bytes : {int64_t{4096}, int64_t{1} << 28}) {
          SynthesisRequest request = RequestFor(topology, collective, bytes);
          if (chunks > 0)
            request.limits.chunks = chunks * (kind == CollectiveKind::kAllreduce ? topology.num_ranks() : 1);
          StatusOr<Synthesis> made = LevelsEngine().Synthesize(request);
          ASSERT_TRUE(made.ok()) << name << ": " << made.status().message();
          made->others.push_back(*made);
          for (const Synthesis& plan : made->others)
            EXPECT_EQ(ToStatus(VerifySchedule(plan.schedule, plan.collective, topology)), OkStatus())
                << fmt::format("{}, {}, {} chunks", name, collective.name(), chunks);
        }
      }
    }
  }
}

TEST(Levels, PlansOfFewKindsOfRanksAreRight) {
  for (const char* name : kOfFewKinds) {
    const Topology topology = *LoadTopology(name);
    const SymmetryGroup group = TurnSwitches(topology, FindTranslations(topology));
    ASSERT_GT(group.num_rank_orbits(), 1) << name;
    const LevelFinder finder(topology, group);
    const std::vector<int64_t> ends = finder.Ends(1 << 30);
    const Collective collective =
        *Collective::Create(SpecOf(CollectiveKind::kAllgather, AllRanks(topology.num_ranks())));
    const int64_t bytes = int64_t{topology.num_ranks()} << 20;
    for (size_t inside_kinds = 0; inside_kinds <= ends.size(); ++inside_kinds) {
      const Levels levels = *finder.Make(ends, "levels", inside_kinds);
      ASSERT_EQ(levels.size(), ends.size() + 1);
      const Schedule compressed = SendOverLevels(levels, topology, group, collective, bytes);
      EXPECT_EQ(compressed.size(), int64_t{group.num_rank_orbits()} * (topology.num_ranks() - 1));
      const Schedule plain = *Expand(compressed, collective, topology);
      for (const Schedule* schedule : {&compressed, &plain})
        EXPECT_EQ(ToStatus(VerifySchedule(*schedule, collective, topology)), OkStatus()) << name;
    }
  }
}

// Kinds can be a level of their own, or one level with ranks of one kind. Each rank sends a block to each
// other rank, over as many levels as there are, and paths that are led around crowds end at the same ranks.
TEST(Levels, AlltoallsOfFewKindsOfRanksAreThoseThatAreWrittenOut) {
  for (const char* name : kOfFewKinds) {
    const Topology topology = *LoadTopology(name);
    const SymmetryGroup group = TurnSwitches(topology, FindTranslations(topology));
    const int32_t n = topology.num_ranks(), kinds = group.num_rank_orbits();
    ASSERT_GT(kinds, 1) << name;
    const LevelFinder finder(topology, group);
    const std::vector<int64_t> orders = finder.Ends(1 << 30);
    std::vector<std::vector<LevelEnd>> choices = {{{group.order(), true}},
                                                  {{orders.front(), true}, {group.order(), true}},
                                                  {{orders.front(), false}, {group.order(), true}}};
    for (size_t inside_kinds = 0; inside_kinds <= orders.size(); ++inside_kinds)
      choices.push_back(EndsWithKinds(orders, inside_kinds, kinds));
    const Collective collective = *Collective::Create(SpecOf(CollectiveKind::kAlltoall, AllRanks(n)));
    const int64_t bytes = int64_t{n} << 20;
    for (const std::vector<LevelEnd>& ends : choices) {
      Levels levels = *finder.Make(ends, "levels");
      ASSERT_EQ(levels.size(), ends.size());
      for (const bool around : {false, true}) {
        if (around && !finder.LeadAroundCrowds(levels)) continue;
        const std::string what =
            fmt::format("{}, {} levels{}", name, levels.size(), around ? ", around" : "");
        const Schedule compressed = SendOverLevels(levels, topology, group, collective, bytes);
        if (levels.size() == 1) {
          EXPECT_EQ(compressed.size(), int64_t{kinds} * (n - 1)) << what;
        }
        const Schedule plain = *Expand(compressed, collective, topology);
        for (const Schedule* schedule : {&compressed, &plain})
          EXPECT_EQ(ToStatus(VerifySchedule(*schedule, collective, topology)), OkStatus()) << what;
      }
    }
  }
}

// The two dies of a host are of two kinds, because one of them has a NIC. They are a level, and so are hosts.
TEST(Levels, KindsInsideHostsAreALevel) {
  constexpr std::string_view kXml = R"(<topology name="dies"><cluster hosts="6">
    <gpu count="2"/><nic id="nic"/><cpu id="cpu"/>
    <link from="0" to="1" bandwidth="200GB/s" latency="1us"/>
    <link from="0" to="nic" bandwidth="25GB/s" latency="0ns"/>
    <link from="1" to="cpu" bandwidth="25GB/s" latency="1us"/>
    <link from="cpu" to="nic" bandwidth="25GB/s" latency="0ns"/>
    <fabric type="switch" bandwidth="25GB/s" latency="1us"/></cluster></topology>)";
  const Topology topology = *ReadNativeXml(kXml, "dies.xml");
  ASSERT_EQ(FindTranslations(topology).num_rank_orbits(), 2);
  const Collective collective =
      *Collective::Create(SpecOf(CollectiveKind::kAlltoall, AllRanks(topology.num_ranks())));
  Synthesis made = *LevelsEngine().Synthesize(RequestFor(topology, collective, int64_t{1} << 28));
  made.others.push_back(made);
  for (const Synthesis& plan : made.others)
    EXPECT_EQ(ToStatus(VerifySchedule(plan.schedule, plan.collective, topology)), OkStatus()) << plan.note;
}

// Cables between groups have the latency of those between routers, so that some shortest paths take two of
// them. Each such path adds a block to the links that limit an alltoall: the fullest cable had 1.1 times the
// load of the others.
TEST(Levels, PathsOfAnAlltoallAreLedAroundCrowds) {
  const Topology topology = *LoadTopology("dragonfly:17x8x4");
  const SymmetryGroup group = FindTranslations(topology);
  const LevelFinder finder(topology, group);
  const LevelEnd all[] = {{group.order(), true}};
  Levels levels = *finder.Make(all, "levels");
  const int64_t n = topology.num_ranks(), bytes = n << 18;
  const Collective collective = *Collective::Create(SpecOf(CollectiveKind::kAlltoall, AllRanks(544)));
  const auto fullest = [&] {  // in blocks
    const LevelsCost cost = CostOverLevels(levels, topology, group, collective, bytes);
    const double block_ps = static_cast<double>(bytes / n) * 1e12 /
                            static_cast<double>(topology.link(LinkId(0)).bandwidth_bytes_per_s);
    return (cost.time_ps - cost.latency_ps) / block_ps;
  };
  constexpr double kOfCable = 32 * 32;  // each rank of a group sends to each of another
  EXPECT_GT(fullest(), 1.05 * kOfCable);
  ASSERT_TRUE(finder.LeadAroundCrowds(levels));
  EXPECT_NEAR(fullest(), kOfCable, 1);
}

TEST(Levels, CompressedPlansAreThoseThatAreWrittenOut) {
  for (const char* name : kClusters) {
    const Topology topology = *LoadTopology(name);
    const SymmetryGroup group = TurnSwitches(topology, FindTranslations(topology));
    ASSERT_TRUE(group.IsTransitive()) << name;
    const LevelFinder finder(topology, group);
    for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kAlltoall}) {
      const Collective collective = *Collective::Create(SpecOf(kind, AllRanks(topology.num_ranks())));
      for (const int64_t most_peers : {int64_t{1} << 30, int64_t{1}}) {
        const Levels levels = *finder.Make(finder.Ends(most_peers), "levels");
        const int64_t bytes = int64_t{topology.num_ranks()} << 20;
        const Schedule compressed = SendOverLevels(levels, topology, group, collective, bytes);
        const Schedule plain = *Expand(compressed, collective, topology);
        for (const Schedule* schedule : {&compressed, &plain})
          EXPECT_EQ(ToStatus(VerifySchedule(*schedule, collective, topology)), OkStatus()) << name;
        // Messages of one step may take turns in another order.
        const auto ps = [&](const Schedule& schedule) {
          return static_cast<double>(Simulate(schedule, collective, topology, {.size_bytes = bytes}).time_ps);
        };
        EXPECT_NEAR(ps(compressed) / ps(plain), 1, 0.01) << name;
      }
    }
  }
}

TEST(Levels, ProductsOfPeersAreAllRanks) {
  for (const char* name : kClusters) {
    const Topology topology = *LoadTopology(name);
    const SymmetryGroup group = FindTranslations(topology);
    const LevelFinder finder(topology, group);
    for (const int64_t most_peers : {int64_t{1} << 30, int64_t{3}, int64_t{1}}) {
      const std::vector<int64_t> ends = finder.Ends(most_peers);
      const Levels levels = *finder.Make(ends, "levels");
      std::vector<int64_t> products = {0};
      for (const Level& level : levels) {
        const size_t before = products.size();
        EXPECT_EQ(static_cast<int64_t>(before), level.inside);
        for (const Peer& peer : level.peers)
          for (size_t i = 0; i < before; ++i)
            products.push_back(group.Compose(products[i], peer.from[0].element));
      }
      EXPECT_EQ(std::ssize(products), group.order()) << name;
      EXPECT_EQ(std::set<int64_t>(products.begin(), products.end()).size(), products.size()) << name;
    }
  }
}

TEST(Levels, AreHostsThenRailsThenPods) {
  const Topology topology = *LoadTopology("fat-tree:k=4");
  const SymmetryGroup group = FindTranslations(topology);
  // Two hosts of an edge switch, two edge switches of a pod, four pods.
  EXPECT_EQ(LevelFinder(topology, group).Ends(1 << 30), (std::vector<int64_t>{2, 4, 16}));
  EXPECT_EQ(LevelFinder(topology, group).Ends(1), (std::vector<int64_t>{2, 4, 8, 16}));
}

TEST(Levels, MeetTheBoundOnFatTreesAndRails) {
  struct Row {
    const char* topology;
    double ratio;
  };
  for (const Row& row : {Row{"leaf-spine:8x4x4", 1.01}, Row{"fat-tree:k=4", 1.01}, Row{"fat-tree:k=6", 1.01},
                         Row{"rail-4", 1.2}, Row{"dragonfly:9x4x2", 1.16}}) {
    const Topology topology = *LoadTopology(row.topology);
    for (const CollectiveKind kind : kKinds) {
      const Collective collective = *Collective::Create(SpecOf(kind, AllRanks(topology.num_ranks())));
      const SynthesisRequest request = RequestFor(topology, collective, int64_t{1} << 30);
      const Synthesis made = *LevelsEngine().Synthesize(request);
      const Bound bound = *LowerBound(topology, collective, request.size_bytes, request.model);
      const Simulation simulation =
          Simulate(made.schedule, made.collective, topology, {.size_bytes = request.size_bytes});
      EXPECT_LE(static_cast<double>(simulation.time_ps), row.ratio * static_cast<double>(bound.bound_ps))
          << row.topology << ", " << collective.name();
    }
  }
}

// On a fat tree of three tiers a small allgather went over three levels, one after the other, and took twice
// the latency of the farthest rank.
TEST(Levels, JoinedLevelsTakeTheLatencyOfOne) {
  const Topology topology = *LoadTopology("fat-tree:k=6");
  for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kAllreduce}) {
    const Collective collective = *Collective::Create(SpecOf(kind, AllRanks(topology.num_ranks())));
    const SynthesisRequest request = RequestFor(topology, collective, int64_t{4} * topology.num_ranks());
    const Synthesis made = *LevelsEngine().Synthesize(request);
    const Bound bound = *LowerBound(topology, collective, request.size_bytes, request.model);
    const Simulation simulation =
        Simulate(made.schedule, made.collective, topology, {.size_bytes = request.size_bytes});
    EXPECT_LE(static_cast<double>(simulation.time_ps),
              (IsAllreduce(kind) ? 2.1 : 1.1) * static_cast<double>(bound.bound_ps))
        << collective.name();
  }
}

// Rails join GPUs of one place in their hosts alone, so GPUs and hosts cannot be one level, even where few
// bytes would like that.
TEST(Levels, StayApartWhereNoPathJoinsThem) {
  LoadOptions options;
  options.hosts = 4;
  const Topology topology = *LoadTopology("dgx-h100", options);
  for (const CollectiveKind kind :
       {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter, CollectiveKind::kAllreduce}) {
    const Collective collective = *Collective::Create(SpecOf(kind, AllRanks(topology.num_ranks())));
    const StatusOr<Synthesis> made = LevelsEngine().Synthesize(RequestFor(topology, collective, 64 << 10));
    EXPECT_TRUE(made.ok()) << collective.name() << ": " << made.status().message();
  }
}

// Racks of GPUs on a switch that sums and multicasts, with one NIC each. NICs have so many times the 10 GB/s
// of which a GPU has 100 to its switch.
Topology Racks(int32_t racks, int32_t gpus, int64_t times = 6) {
  TopologySpec spec = testing::MakeCluster(racks, gpus).spec();
  for (Node& node : spec.nodes)
    if (node.kind == NodeKind::kSwitch && node.host) node.multicast = node.reduce = true;
  for (Link& link : spec.links)
    if (!spec.nodes[link.from.index()].reduce && !spec.nodes[link.to.index()].reduce)
      link.bandwidth_bytes_per_s *= times;
  return *Topology::Create(std::move(spec));
}

Collective AllreduceOf(const Topology& topology) {
  return *Collective::Create(SpecOf(CollectiveKind::kAllreduce, AllRanks(topology.num_ranks())));
}

int64_t TimeOf(const Schedule& schedule, const Collective& collective, const Topology& topology,
               int64_t bytes) {
  return Simulate(schedule, collective, topology, {.size_bytes = bytes}).time_ps;
}

constexpr std::string_view kThroughSwitches = "2 levels, the innermost through switches";

// Every port of a switch that sums and multicasts carries each byte of an allreduce once in each direction.
TEST(Levels, SwitchesSumAndCopyInsideRacks) {
  for (int32_t racks = 2; racks <= 8; ++racks) {
    for (int32_t gpus = 4; racks * gpus <= 64 && gpus <= 12; ++gpus) {
      const Topology topology = Racks(racks, gpus);
      const Collective collective = AllreduceOf(topology);
      const int64_t bytes = int64_t{topology.num_ranks()} << 24;
      const std::string name = fmt::format("{} racks of {}", racks, gpus);
      SynthesisRequest request = RequestFor(topology, collective, bytes);
      request.limits.chunks = 32 * topology.num_ranks();
      const Synthesis made = *LevelsEngine().Synthesize(request);
      EXPECT_EQ(made.note, kThroughSwitches) << name;
      const Schedule plain = *Expand(made.schedule, made.collective, topology);
      for (const Schedule* schedule : {&made.schedule, &plain})
        EXPECT_EQ(ToStatus(VerifySchedule(*schedule, made.collective, topology)), OkStatus()) << name;
      const Simulation simulation =
          Simulate(made.schedule, made.collective, topology, {.size_bytes = bytes, .record_links = true});
      const double once_ps = static_cast<double>(bytes) * 10;  // at 100 GB/s
      for (int32_t l = 0; l < topology.num_links(); ++l) {
        const Link& link = topology.link(LinkId(l));
        const bool of_switch = topology.node(link.from).reduce || topology.node(link.to).reduce;
        if (of_switch) {
          EXPECT_NEAR(static_cast<double>(simulation.link_busy_ps[static_cast<size_t>(l)]) / once_ps, 1, 1e-3)
              << name << ", link " << l;
        }
      }
      EXPECT_LE(static_cast<double>(simulation.time_ps), 1.15 * once_ps) << name;
    }
  }
}

TEST(Levels, TreesThroughSwitchesAreThoseThatAreWrittenOut) {
  for (const auto& [racks, gpus] : {std::pair{2, 3}, std::pair{4, 5}, std::pair{8, 8}, std::pair{3, 12}}) {
    const Topology topology = Racks(racks, gpus);
    const SymmetryGroup group = FindTranslations(topology);
    ASSERT_TRUE(group.IsTransitive());
    const LevelFinder finder(topology, group);
    Levels levels = *finder.Make(finder.Ends(1 << 30), "levels");
    levels.front().trees = finder.SwitchTrees(gpus, false);
    ASSERT_EQ(levels.front().trees.size(), 1);
    EXPECT_EQ(std::ssize(levels.front().trees[0]), gpus);
    const Collective collective =
        *Collective::Create(SpecOf(CollectiveKind::kAllgather, AllRanks(topology.num_ranks())));
    const Schedule compressed = SendOverLevels(levels, topology, group, collective, int64_t{1} << 20);
    EXPECT_EQ(compressed.size(), 2 * racks - 1);  // a NIC's message to each other rack, and a tree in each
    const Schedule plain = *Expand(compressed, collective, topology);
    EXPECT_EQ(plain.size(), compressed.size() * group.order());
    for (const Schedule* schedule : {&compressed, &plain})
      EXPECT_EQ(ToStatus(VerifySchedule(*schedule, collective, topology)), OkStatus());
  }
}

TEST(Levels, SwitchesAreLeftOutWhereTheyGainNothing) {
  struct Row {
    const char* why;
    Topology topology;
    int64_t bytes;
  };
  Topology forwards_alone = testing::MakeCluster(4, 8);
  for (const Row& row :
       {Row{"latency rules", Racks(4, 8), 4096}, Row{"two GPUs of a rack", Racks(8, 2), int64_t{1} << 30},
        Row{"no level outside the switch", Racks(1, 8), int64_t{1} << 30},
        Row{"NICs take most of the time", Racks(4, 4, 1), int64_t{1} << 30},
        Row{"the switch neither sums nor copies", forwards_alone, int64_t{1} << 30}}) {
    const Collective collective = AllreduceOf(row.topology);
    const Synthesis made = *LevelsEngine().Synthesize(RequestFor(row.topology, collective, row.bytes));
    EXPECT_NE(made.note, kThroughSwitches) << row.why;
    EXPECT_EQ(made.collective.num_chunks(), row.topology.num_ranks()) << row.why;
  }
}

// One rank's part of a compressed plan cannot have trees.
TEST(Levels, SwitchesAreLeftOutWhereProgramsOfAllRanksAreTooLong) {
  for (const bool is_large : {false, true}) {
    const Topology topology = is_large ? Racks(128, 12) : Racks(8, 12);
    const Collective collective = AllreduceOf(topology);
    SynthesisRequest request = RequestFor(topology, collective, int64_t{1} << 30);
    for (const bool decide : {false, true}) {
      request.programs_decide = decide;
      const Synthesis made = *LevelsEngine().Synthesize(request);
      EXPECT_EQ(made.note == kThroughSwitches, !is_large || !decide)
          << topology.num_ranks() << " ranks, " << made.note;
    }
  }
}

// Parallel switches, and parallel cables to one, have a tree each, which chunks take in turn.
TEST(Levels, ParallelSwitchesTakeTurns) {
  TopologySpec spec = Racks(3, 4).spec();
  const size_t links = spec.links.size();
  for (size_t l = 0; l < links; ++l)
    if (spec.nodes[spec.links[l].from.index()].reduce || spec.nodes[spec.links[l].to.index()].reduce)
      spec.links.push_back(spec.links[l]);
  const Topology topology = *Topology::Create(std::move(spec));
  const Collective collective = AllreduceOf(topology);
  const int64_t bytes = int64_t{12} << 22;
  const Synthesis made = *LevelsEngine().Synthesize(RequestFor(topology, collective, bytes));
  EXPECT_EQ(made.note, kThroughSwitches);
  EXPECT_EQ(ToStatus(VerifySchedule(made.schedule, made.collective, topology)), OkStatus());
  EXPECT_LE(static_cast<double>(TimeOf(made.schedule, made.collective, topology, bytes)),
            0.6 * static_cast<double>(bytes) * 10);
}

// Written out, the plan has too many links of trees to be simulated in full. Its columns then give about the
// same time.
TEST(Levels, LargePlansThroughSwitchesAreSimulatedByTheirColumns) {
  const Topology topology = Racks(4, 36);
  const Collective collective = AllreduceOf(topology);
  SynthesisRequest request = RequestFor(topology, collective, int64_t{144} << 23);
  request.limits.chunks = 144 * 128;
  const Synthesis made = *LevelsEngine().Synthesize(request);
  EXPECT_EQ(made.note, kThroughSwitches);
  EXPECT_EQ(made.schedule.symmetry.empty(), false);
  const Schedule plain = *Expand(made.schedule, made.collective, topology);
  const SimulationRuns columns =
      RunSimulation(made.schedule, made.collective, topology, {.size_bytes = request.size_bytes});
  EXPECT_FALSE(columns.plain.has_value());
  const double all_ps = static_cast<double>(TimeOf(plain, made.collective, topology, request.size_bytes));
  EXPECT_NEAR(static_cast<double>(columns.simulation.time_ps) / all_ps, 1, 0.02);
}

// 268 million parts, of which the columns move those of rank 0. The last chunk of rank 0 goes to rank 16,383.
TEST(Levels, AlltoallsOfMorePartsThanATableHasArePlanned) {
  const Topology topology = *LoadTopology("leaf-spine:128x8x128");
  const int32_t n = topology.num_ranks();
  ASSERT_GT(int64_t{n} * n, kMostParts);
  const Collective collective = *Collective::Create(SpecOf(CollectiveKind::kAlltoall, AllRanks(n)));
  SynthesisRequest request = RequestFor(topology, collective, 64 << 20);
  const Synthesis made = *LevelsEngine().Synthesize(request);
  EXPECT_EQ(made.schedule.num_chunks, int64_t{n} * n);
  EXPECT_EQ(made.schedule.moved_chunks(), n);
  const Simulation simulated = Simulate(made.schedule, made.collective, topology, {.size_bytes = 64 << 20});
  EXPECT_EQ(simulated.unsound, "");
  const Bound bound = *LowerBound(topology, collective, 64 << 20, request.model);
  EXPECT_LE(static_cast<double>(simulated.time_ps), 1.05 * static_cast<double>(bound.bound_ps));

  Schedule wrong = made.schedule;
  EXPECT_TRUE(VerifySchedule(wrong, made.collective, topology).empty());
  wrong.first.back() = ChunkId(n);  // of rank 1, whose chunks are translates of those of rank 0
  std::string rules;
  for (const Violation& violation : VerifySchedule(wrong, made.collective, topology)) rules += violation.rule;
  EXPECT_NE(rules.find("S7"), std::string::npos) << rules;

  wrong.first.back() = ChunkId(std::numeric_limits<int32_t>::max());  // its table would have 2^31 rows
  wrong.num_chunks = int64_t{1} << 40;
  const Collective larger = *Collective::Create(SpecOf(CollectiveKind::kAlltoall, AllRanks(1 << 17)));
  EXPECT_FALSE(VerifySchedule(wrong, larger, topology).empty());
  wrong.num_chunks = made.schedule.num_chunks;
  EXPECT_FALSE(VerifySchedule(wrong, made.collective, topology).empty());
  Schedule plain = made.schedule;
  plain.symmetry.clear();
  EXPECT_EQ(VerifySchedule(plain, made.collective, topology).front().rule, "S1");

  // Ranks that are not alike have demands for each pair.
  const Collective some = *Collective::Create(SpecOf(CollectiveKind::kAlltoall, AllRanks(10'000)));
  EXPECT_EQ(LowerBound(topology, some, 1 << 30, request.model).status().message(),
            "alltoall of 10000 ranks: 16384 kinds of ranks; expected at most 67108864 pairs, or ranks that "
            "are alike");

  request.limits.chunks = 2;
  EXPECT_EQ(LevelsEngine().Serves(request).message(),
            "levels: 268435456 parts, one for each pair of 16384 ranks; at most 67108864 are supported "
            "unless each is one chunk");
}

// 71 million parts, of which the columns move those of the lowest rank of each of 16 kinds. Cables between
// groups limit the time: each carries the blocks of 256 ranks for 256 others.
TEST(Levels, AlltoallsOfFewKindsOfManyRanksArePlanned) {
  const Topology topology = *LoadTopology("dragonfly:33x16x16");
  const int64_t n = topology.num_ranks();
  ASSERT_GT(n * n, kMostParts);
  const Collective collective =
      *Collective::Create(SpecOf(CollectiveKind::kAlltoall, AllRanks(topology.num_ranks())));
  constexpr int64_t kBytes = int64_t{1} << 30;
  const Synthesis made = *LevelsEngine().Synthesize(RequestFor(topology, collective, kBytes));
  const SymmetryGroup group = FindTranslations(topology);
  ASSERT_EQ(group.num_rank_orbits(), 16);
  EXPECT_EQ(made.schedule.size(), 16 * (n - 1));
  EXPECT_EQ(made.schedule.num_chunks, n * n);
  EXPECT_EQ(made.schedule.moved_chunks(), (group.Representative(15).value + 1) * n);
  EXPECT_TRUE(VerifySchedule(made.schedule, made.collective, topology).empty());
  const Simulation simulated = Simulate(made.schedule, made.collective, topology, {.size_bytes = kBytes});
  EXPECT_EQ(simulated.unsound, "");
  const double cable_ps = 256 * 256 * static_cast<double>(kBytes / n) * 1e12 /
                          static_cast<double>(topology.link(LinkId(0)).bandwidth_bytes_per_s);
  EXPECT_NEAR(static_cast<double>(simulated.time_ps) / cable_ps, 1, 0.02);

  Schedule wrong = made.schedule;
  wrong.first.back() = ChunkId(n);  // of rank 1, whose chunks are translates of those of rank 0
  std::string rules;
  for (const Violation& violation : VerifySchedule(wrong, made.collective, topology)) rules += violation.rule;
  EXPECT_NE(rules.find("S7"), std::string::npos) << rules;
}

// The lowest rank of the second kind comes after 33,000 ranks of the first.
TEST(Levels, AlltoallsWhoseChunksHaveNoIdsAreRefused) {
  constexpr int32_t kOfKind = 33'000;
  const Topology topology = testing::MakeSwitch(2 * kOfKind);
  Automorphism next{.order = kOfKind, .image = {}};
  for (int32_t n = 0; n < topology.num_nodes(); ++n) next.image.emplace_back(n);
  for (int32_t r = 0; r < 2 * kOfKind; ++r)
    next.image[topology.NodeOf(Rank(r)).index()] =
        topology.NodeOf(Rank(r / kOfKind * kOfKind + (r + 1) % kOfKind));
  const StatusOr<SymmetryGroup> group = SymmetryGroup::Create(topology, {next});
  ASSERT_TRUE(group.ok()) << group.status().message();
  for (const auto& [ranks, message] :
       {std::pair(2 * kOfKind,
                  "levels: chunk 2178065999 of rank 33000, the lowest of its kind; chunks are known up to "
                  "2^31-1"),
        std::pair(kOfKind + 1, "")}) {
    const Collective collective = *Collective::Create(SpecOf(CollectiveKind::kAlltoall, AllRanks(ranks)));
    EXPECT_EQ(CheckChunkIds(*group, collective, "levels").message(), message);
  }
}

TEST(Levels, RefuseWhatIsNotAlike) {
  struct Row {
    const char* topology;
    const char* message;
  };
  for (const Row& row :
       {Row{"torus:4x4",
            "levels: rank 0 reaches 5 of 16 ranks without passing another gpu; expected a "
            "rank of every host"},
        Row{"mesh:1x3", "levels: 3 kinds of ranks, 1 of each; expected few kinds and many of each"}}) {
    const Topology topology = *LoadTopology(row.topology);
    const Collective collective =
        *Collective::Create(SpecOf(CollectiveKind::kAllgather, AllRanks(topology.num_ranks())));
    const StatusOr<Synthesis> made = LevelsEngine().Synthesize(RequestFor(topology, collective, 1 << 20));
    ASSERT_FALSE(made.ok()) << row.topology;
    EXPECT_EQ(made.status().message(), row.message);
  }
  const Topology topology = *LoadTopology("nvswitch:4");
  const Collective some = *Collective::Create(SpecOf(CollectiveKind::kAllgather, {Rank(0), Rank(1)}));
  EXPECT_EQ(LevelsEngine().Synthesize(RequestFor(topology, some, 1 << 20)).status().message(),
            "levels: 2 of 4 ranks; expected all");
}

}  // namespace
}  // namespace xccl
