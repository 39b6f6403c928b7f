// Plans of rail-trees verify on small clusters of many kinds, from every root, and come near the bound on
// rails.
#include "synth/rails/rail_trees.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/test_machines.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

using testing::MakeCluster;
using testing::MakeSwitch;

constexpr int64_t kGb = 1'000'000'000;

struct HostShape {
  int32_t gpus = 1, nics = 1;
  bool shared = false;  // two GPUs reach a NIC over a PCIe switch
};

class Builder {
 public:
  int32_t Add(NodeKind kind, const std::string& id, std::optional<HostId> host) {
    spec_.nodes.push_back({kind, id, host});
    return static_cast<int32_t>(spec_.nodes.size()) - 1;
  }
  void Cable(int32_t a, int32_t b, int64_t gb_per_s) {
    spec_.links.push_back({NodeId(a), NodeId(b), gb_per_s * kGb, 500'000, 0});
    spec_.links.push_back({NodeId(b), NodeId(a), gb_per_s * kGb, 500'000, 0});
  }
  // Adds a host. NIC k is joined to leaf k mod leaves.
  void AddHost(const HostShape& shape, const std::vector<int32_t>& leaves) {
    const HostId host(std::ssize(spec_.hosts));
    spec_.hosts.push_back({fmt::format("h{}", host.value)});
    const int32_t inside = Add(NodeKind::kSwitch, "nvswitch", host);
    std::vector<int32_t> gpus;
    for (int32_t g = 0; g < shape.gpus; ++g) {
      gpus.push_back(Add(NodeKind::kGpu, std::to_string(g), host));
      Cable(gpus.back(), inside, 100);
    }
    for (int32_t n = 0; n < shape.nics; ++n) {
      const int32_t nic = Add(NodeKind::kNic, fmt::format("nic{}", n), host);
      Cable(nic, leaves[static_cast<size_t>(n) % leaves.size()], 10);
      if (shape.shared) {
        const int32_t pcie = Add(NodeKind::kSwitch, fmt::format("pcie{}", n), host);
        Cable(nic, pcie, 10);
        for (int32_t g = 0; g < 2; ++g) Cable(pcie, gpus[static_cast<size_t>(2 * n + g) % gpus.size()], 20);
      } else {
        Cable(nic, gpus[static_cast<size_t>(n) % gpus.size()], 10);
      }
    }
  }
  Topology Make() { return Topology::Create(std::move(spec_)).value(); }

 private:
  TopologySpec spec_{.name = "hosts", .source = "", .hosts = {}, .nodes = {}, .links = {}, .warnings = {}};
};

// Hosts on leaves that spines join, or on rails that meet only in hosts.
Topology MakeHosts(const std::vector<HostShape>& shapes, int32_t leaves, int32_t spines) {
  Builder builder;
  std::vector<int32_t> leaf;
  for (int32_t l = 0; l < leaves; ++l)
    leaf.push_back(builder.Add(NodeKind::kSwitch, fmt::format("leaf{}", l), std::nullopt));
  for (int32_t s = 0; s < spines; ++s) {
    const int32_t spine = builder.Add(NodeKind::kSwitch, fmt::format("spine{}", s), std::nullopt);
    for (int32_t l : leaf) builder.Cable(l, spine, 20);
  }
  for (const HostShape& shape : shapes) builder.AddHost(shape, leaf);
  return builder.Make();
}

Collective CollectiveOf(CollectiveKind kind, std::vector<Rank> ranks, Rank root) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = std::move(ranks);
  spec.root = root;
  return *Collective::Create(std::move(spec));
}

StatusOr<Synthesis> PlanOn(const Topology& topology, const Collective& collective, int64_t size_bytes,
                           SynthesisLimits limits = {}) {
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  request.size_bytes = size_bytes;
  request.limits = limits;
  return RailTreesEngine().Synthesize(request);
}

constexpr CollectiveKind kKinds[] = {CollectiveKind::kBroadcast, CollectiveKind::kReduce};

void ExpectRight(const std::string& name, const Topology& topology, const std::vector<Rank>& ranks,
                 Rank root) {
  for (CollectiveKind kind : kKinds) {
    const Collective collective = CollectiveOf(kind, ranks, root);
    for (int64_t size : {int64_t{1} << 10, int64_t{1} << 16, int64_t{1} << 24, int64_t{1} << 28}) {
      SCOPED_TRACE(fmt::format("{}, {}, root {}, {} bytes", name, collective.name(), root.value, size));
      const StatusOr<Synthesis> made = PlanOn(topology, collective, size);
      ASSERT_TRUE(made.ok()) << made.status().message();
      ASSERT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)), OkStatus());
      Schedule normalized = made->schedule;
      Normalize(normalized);
      EXPECT_TRUE(normalized == made->schedule);
    }
  }
}

TEST(RailTrees, PlansOfClustersOfAllSizesVerify) {
  for (int32_t hosts = 2; hosts <= 17; ++hosts)
    for (int32_t gpus : {1, 2, 3, 4})
      if (hosts * gpus <= 64) {
        const Topology cluster = MakeCluster(hosts, gpus);
        const int32_t ranks = cluster.num_ranks();
        for (int32_t root : {0, ranks / 2, ranks - 1})
          ExpectRight(fmt::format("{}x{}", hosts, gpus), cluster, AllRanks(ranks), Rank(root));
      }
}

TEST(RailTrees, PlansOfUnevenHostsVerify) {
  const HostShape full{4, 4}, few_nics{4, 2}, few_gpus{2, 4}, shared{4, 2, true}, one{1, 1}, missing{4, 3};
  const std::vector<std::pair<std::string, Topology>> machines = {
      {"fewer nics than gpus", MakeHosts(std::vector<HostShape>(5, few_nics), 2, 0)},
      {"more nics than gpus", MakeHosts(std::vector<HostShape>(5, few_gpus), 4, 0)},
      {"shared nics", MakeHosts(std::vector<HostShape>(6, shared), 2, 0)},
      {"a host without a nic of a rail", MakeHosts({full, full, missing, full, full, full}, 4, 2)},
      {"hosts of two kinds", MakeHosts({full, shared, full, few_gpus, few_nics, full, full}, 4, 3)},
      {"one gpu a host", MakeHosts(std::vector<HostShape>(9, one), 3, 2)},
      {"a small host", MakeHosts({full, full, one, full}, 2, 2)},
  };
  for (const auto& [name, machine] : machines)
    for (int32_t root = 0; root < machine.num_ranks(); root += 3)
      ExpectRight(name, machine, AllRanks(machine.num_ranks()), Rank(root));
}

TEST(RailTrees, SomeRanksAloneCarryTheData) {
  const Topology cluster = MakeCluster(5, 4);
  const std::vector<Rank> ranks = {Rank(7), Rank(1), Rank(2), Rank(19), Rank(12), Rank(4), Rank(5)};
  ExpectRight("members", cluster, ranks, Rank(12));
  const StatusOr<Synthesis> made =
      PlanOn(cluster, CollectiveOf(CollectiveKind::kBroadcast, ranks, Rank(12)), 1 << 24);
  ASSERT_TRUE(made.ok());
  for (int64_t t = 0; t < made->schedule.size(); ++t)
    EXPECT_TRUE(made->collective.MemberIndex(made->schedule.at(t).src));
}

// Sixteen hosts of eight on separate rails. In a reduction GPUs wait for sums of whole waves.
TEST(RailTrees, ComesNearTheBoundOnRails) {
  const Topology rails = MakeHosts(std::vector<HostShape>(16, HostShape{8, 8}), 8, 0);
  for (CollectiveKind kind : kKinds) {
    const Collective collective = CollectiveOf(kind, AllRanks(rails.num_ranks()), Rank(77));
    const int64_t size = int64_t{1} << 30;
    const StatusOr<Synthesis> made = PlanOn(rails, collective, size);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const int64_t time_ps = Simulate(made->schedule, made->collective, rails, {.size_bytes = size}).time_ps;
    const StatusOr<Bound> bound = LowerBound(rails, collective, size, TimeModel::kPipelined);
    ASSERT_TRUE(bound.ok());
    EXPECT_GE(time_ps, bound->bound_ps);
    const double most = kind == CollectiveKind::kBroadcast ? 1.05 : 1.7;
    EXPECT_LE(static_cast<double>(time_ps), most * static_cast<double>(bound->bound_ps));
  }
}

// Returns the time of a broadcast or reduction of 1 GiB ÷ its bound, by the engine.
double RatioOf(const std::string& xml, CollectiveKind kind = CollectiveKind::kBroadcast) {
  const Topology machine = ReadNativeXml(xml, "machine").value();
  const Collective collective = CollectiveOf(kind, AllRanks(machine.num_ranks()), Rank(0));
  constexpr int64_t kSize = int64_t{1} << 30;
  const StatusOr<Synthesis> made = PlanOn(machine, collective, kSize);
  EXPECT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, machine)), OkStatus());
  const int64_t time_ps = Simulate(made->schedule, made->collective, machine, {.size_bytes = kSize}).time_ps;
  const StatusOr<Bound> bound = LowerBound(machine, collective, kSize, TimeModel::kPipelined);
  EXPECT_TRUE(bound.ok());
  return static_cast<double>(time_ps) / static_cast<double>(bound->bound_ps);
}

// Four pods of 16 leaves of two hosts, and a core with a seventh of the bandwidth. Streams that leave a leaf
// or a pod would meet on its links; trees leave each once for each NIC.
TEST(RailTrees, StreamsDoNotMeetAboveLeavesAndPods) {
  EXPECT_LE(RatioOf(R"(<topology name="pods">
  <cluster hosts="4" name="pod">
    <cluster hosts="32">
      <nvswitch gpus="8" bandwidth="450GB/s" latency="500ns"/>
      <nic id="nic" count="8"/>
      <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="400Gbit/s" latency="0ns"/>
      <fabric type="leaf-spine" leaves="16" spines="16" bandwidth="400Gbit/s" latency="1300ns" oversubscription="1"
              uplink-latency="300ns"/>
    </cluster>
    <fabric id="core" type="switch" oversubscription="7" latency="300ns"/>
  </cluster>
</topology>)"),
            1.15);
}

// Nine groups of four routers with five hosts of one GPU, one cable between each two groups.
TEST(RailTrees, StreamsDoNotMeetBetweenGroupsOfADragonfly) {
  EXPECT_LE(RatioOf(R"(<topology name="dragonfly">
  <dragonfly groups="9" routers="4" hosts="5" bandwidth="50GB/s" latency="1300ns" uplink-latency="300ns"
             global-latency="300ns"/>
</topology>)"),
            1.3);
}

// Racks whose trays an NVLink switch joins: one host each.
std::string RacksXml(std::string_view switch_flags) {
  return fmt::format(R"(<topology name="racks">
  <cluster hosts="6" name="rack">
    <cluster hosts="3" name="tray">
      <gpu count="4"/>
      <nic id="nic" count="4"/>
      <link from="gpu:*" to="nvswitch" bandwidth="200GB/s" latency="500ns"/>
      <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="400Gbit/s" latency="0ns"/>
    </cluster>
    <switch id="nvswitch" {}/>
  </cluster>
  <switch id="rail" count="4"/>
  <link from="*/nic0" to="rail0" bandwidth="400Gbit/s" latency="1300ns"/>
  <link from="*/nic1" to="rail1" bandwidth="400Gbit/s" latency="1300ns"/>
  <link from="*/nic2" to="rail2" bandwidth="400Gbit/s" latency="1300ns"/>
  <link from="*/nic3" to="rail3" bandwidth="400Gbit/s" latency="1300ns"/>
  <switch id="spine"/>
  <link from="rail*" to="spine" bandwidth="900GB/s" latency="300ns"/>
</topology>)",
                     switch_flags);
}

// A GPU receives at the rate of its NIC and could not send that on to eleven others. The switch copies it to
// all.
TEST(RailTrees, SwitchesOfRacksCopyToAll) {
  EXPECT_LE(RatioOf(RacksXml(R"(multicast="true" reduce="true")")), 1.4);
  EXPECT_LE(RatioOf(RacksXml(R"(multicast="true" reduce="true")"), CollectiveKind::kReduce), 2.5);
  EXPECT_LE(RatioOf(RacksXml("")), 3);
}

// A switch that copies need not add up, and the reverse.
TEST(RailTrees, SwitchesDoWhatTheyCan) {
  for (const char* flags : {R"(multicast="true")", R"(reduce="true")"}) {
    SCOPED_TRACE(flags);
    EXPECT_LE(RatioOf(RacksXml(flags)), 3);
    EXPECT_LE(RatioOf(RacksXml(flags), CollectiveKind::kReduce), 4);
  }
}

// A second network joins GPUs of different hosts by leaves and a spine. These hosts are no racks.
TEST(RailTrees, LeavesAreNoRacks) {
  EXPECT_LE(RatioOf(R"(<topology name="second">
  <cluster hosts="2" name="pair">
    <cluster hosts="3">
      <nvswitch gpus="4" bandwidth="200GB/s" latency="500ns"/>
      <nic id="nic" count="4"/>
      <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="50GB/s" latency="0ns"/>
      <link from="gpu:*" to="leaf" bandwidth="10GB/s" latency="1300ns"/>
    </cluster>
    <switch id="leaf"/>
  </cluster>
  <switch id="spine"/>
  <link from="pair0.leaf" to="spine" bandwidth="10GB/s" latency="300ns"/>
  <link from="pair1.leaf" to="spine" bandwidth="10GB/s" latency="300ns"/>
  <switch id="rail" count="4"/>
  <link from="*/nic0" to="rail0" bandwidth="50GB/s" latency="1300ns"/>
  <link from="*/nic1" to="rail1" bandwidth="50GB/s" latency="1300ns"/>
  <link from="*/nic2" to="rail2" bandwidth="50GB/s" latency="1300ns"/>
  <link from="*/nic3" to="rail3" bandwidth="50GB/s" latency="1300ns"/>
</topology>)"),
            1.5);
}

// Hosts of 8 GPUs on leaves that all spines join.
std::string LeavesXml(int32_t hosts, int32_t leaves, int32_t spines, int32_t uplink_gbit) {
  return fmt::format(R"(<topology name="leaves">
  <cluster hosts="{}">
    <nvswitch gpus="8" bandwidth="450GB/s" latency="500ns"/>
    <nic id="nic" count="8"/>
    <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="400Gbit/s" latency="0ns"/>
    <fabric type="leaf-spine" leaves="{}" spines="{}" bandwidth="400Gbit/s" latency="1300ns"
            uplink-bandwidth="{}Gbit/s" uplink-latency="300ns"/>
  </cluster>
</topology>)",
                     hosts, leaves, spines, uplink_gbit);
}

// Eight trees enter and leave each leaf once, over eight uplinks.
TEST(RailTrees, EveryUplinkCarriesOneStream) { EXPECT_LE(RatioOf(LeavesXml(60, 12, 8, 400)), 1.1); }

// Eight streams enter each leaf over four uplinks, which carry as much as they can.
TEST(RailTrees, StreamsThatShareUplinksTakeTurns) {
  EXPECT_LE(RatioOf(LeavesXml(24, 8, 4, 400)), 1.05);
  EXPECT_LE(RatioOf(LeavesXml(24, 8, 4, 400), CollectiveKind::kReduce), 1.6);
}

// Sixteen streams of half a NIC's bandwidth enter each leaf over sixteen uplinks.
TEST(RailTrees, LanesAreAsWideAsUplinks) { EXPECT_LE(RatioOf(LeavesXml(24, 8, 16, 200)), 1.1); }

// Four switches join the GPUs of a host. No GPU sends a tree over one of them alone.
TEST(RailTrees, SwitchesInsideHostsShareTheLoad) {
  std::string host, rails;
  for (int32_t s = 0; s < 4; ++s)
    host += fmt::format(
        R"(<switch id="nv{0}"/><link from="gpu:*" to="nv{0}" bandwidth="112.5GB/s" latency="500ns"/>)", s);
  for (int32_t k = 0; k < 8; ++k)
    rails += fmt::format(R"(<link from="*/nic{0}" to="rail{0}" bandwidth="50GB/s" latency="1300ns"/>)", k);
  EXPECT_LE(RatioOf(fmt::format(R"(<topology name="switches">
  <cluster hosts="16">
    <gpu count="8"/>
    {}
    <nic id="nic" count="8"/>
    <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="50GB/s" latency="0ns"/>
  </cluster>
  <switch id="rail" count="8"/>
  {}
</topology>)",
                                host, rails)),
            1.25);
}

// Equal uplinks carry equally much.
TEST(RailTrees, SharesSpinesEvenly) {
  const Topology machine = MakeHosts(std::vector<HostShape>(12, HostShape{2, 2}), 6, 3);
  const Collective collective =
      CollectiveOf(CollectiveKind::kBroadcast, AllRanks(machine.num_ranks()), Rank(0));
  const StatusOr<Synthesis> made = PlanOn(machine, collective, int64_t{1} << 28);
  ASSERT_TRUE(made.ok());
  const Simulation simulation =
      Simulate(made->schedule, made->collective, machine, {.size_bytes = 1 << 28, .record_links = true});
  int64_t least = INT64_MAX, most = 0;
  for (int32_t l = 0; l < machine.num_links(); ++l) {
    const NodeId to = machine.link(LinkId(l)).to;
    if (!machine.node(to).id.starts_with("spine")) continue;
    least = std::min(least, simulation.link_busy_ps[static_cast<size_t>(l)]);
    most = std::max(most, simulation.link_busy_ps[static_cast<size_t>(l)]);
  }
  EXPECT_LE(most, 3 * std::max<int64_t>(1, least));
}

TEST(RailTrees, KeepsLimitsOfChunksAndSteps) {
  const Topology cluster = MakeCluster(6, 4);
  const Collective collective = CollectiveOf(CollectiveKind::kBroadcast, AllRanks(24), Rank(3));
  for (int32_t chunks : {1, 2, 3, 4, 7, 20}) {
    const StatusOr<Synthesis> made = PlanOn(cluster, collective, 1 << 26, {.chunks = chunks});
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(made->collective.num_chunks(), chunks);
    EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, cluster)), OkStatus());
  }
  const StatusOr<Synthesis> free = PlanOn(cluster, collective, 1 << 26);
  ASSERT_TRUE(free.ok());
  const int32_t steps = free->schedule.num_steps();
  ASSERT_GT(steps, 6);
  const StatusOr<Synthesis> made = PlanOn(cluster, collective, 1 << 26, {.steps = 6});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_LE(made->schedule.num_steps(), 6);
  const StatusOr<Synthesis> none = PlanOn(cluster, collective, 1 << 26, {.steps = 2});
  EXPECT_EQ(none.status().code(), StatusCode::kLimit);
  EXPECT_TRUE(none.status().needed());
}

// Sixteen lanes of twenty waves to 32,768 ranks would be 10 million transfers.
TEST(RailTrees, ReductionsOfLargeClustersHaveFewerWaves) {
  const Topology cluster = MakeCluster(2048, 16);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kReduce;
  spec.ranks = AllRanks(cluster.num_ranks());
  spec.root = Rank(0);
  const Collective reduce = *Collective::Create(std::move(spec));
  const Bound bound;  // it does not matter
  SynthesisRequest request{.topology = &cluster, .collective = &reduce, .size_bytes = int64_t{1} << 30};
  request.bound = &bound;
  const StatusOr<Offer> offer = RailTreesEngine().Offered(request);
  ASSERT_TRUE(offer.ok()) << offer.status().message();
  EXPECT_GT(offer->work, int64_t{1} << 21);
  EXPECT_LE(offer->work, int64_t{1} << 22);
}

TEST(RailTrees, SaysWhyNot) {
  const Topology alone = MakeSwitch(4);
  EXPECT_EQ(PlanOn(alone, CollectiveOf(CollectiveKind::kBroadcast, AllRanks(4), Rank(0)), 1 << 20)
                .status()
                .message(),
            "rail-trees: all ranks are on one host; expected two hosts or more; hint: --engine=forest");
  const Topology loose = MakeHosts({{2, 1}, {2, 0}}, 1, 0);
  EXPECT_EQ(
      PlanOn(loose, CollectiveOf(CollectiveKind::kReduce, AllRanks(4), Rank(0)), 1 << 20).status().message(),
      "rail-trees: no cable joins host h1 to a switch outside hosts in both directions; expected one on "
      "every host; hint: --engine=forest");
}

// GPU 1 of each host has the host's cable, and takes no part. A path once passed it.
TEST(RailTrees, CablesOfOtherGpusAreNoWay) {
  const Topology machine = ReadNativeXml(R"(<topology name="one cable"><cluster hosts="2" name="h">
      <gpu count="2"/><link from="gpu:0" to="gpu:1" bandwidth="100GB/s"/></cluster>
      <switch id="leaf"/><link from="*/gpu:1" to="leaf" bandwidth="50GB/s"/></topology>)",
                                         "test")
                               .value();
  const std::vector<Rank> some = {Rank(0), Rank(2)}, with_cables = {Rank(1), Rank(3)};
  EXPECT_EQ(
      PlanOn(machine, CollectiveOf(CollectiveKind::kBroadcast, some, Rank(0)), 1 << 20).status().message(),
      "rail-trees: no cable joins host h0 to a switch outside hosts in both directions; expected one on "
      "every host; hint: --engine=forest");
  EXPECT_TRUE(PlanOn(machine, CollectiveOf(CollectiveKind::kBroadcast, with_cables, Rank(1)), 1 << 20).ok());
}

// One host's cable is ten billion times as slow as the others, which do not get ten billion lanes.
TEST(RailTrees, CablesMayBeUnlikeBeyondMeasure) {
  const Topology machine = ReadNativeXml(R"(<topology name="slow cable"><cluster hosts="3" name="h">
      <gpu count="1"/></cluster><switch id="leaf"/>
      <link from="h0/gpu:0" to="leaf" bandwidth="50GB/s"/><link from="h1/gpu:0" to="leaf" bandwidth="50GB/s"/>
      <link from="h2/gpu:0" to="leaf" bandwidth="5B/s"/></topology>)",
                                         "test")
                               .value();
  const StatusOr<Synthesis> plan =
      PlanOn(machine, CollectiveOf(CollectiveKind::kBroadcast, AllRanks(3), Rank(0)), 1 << 10);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
}

}  // namespace
}  // namespace xccl
