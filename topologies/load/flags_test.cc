// The flags of TOPOLOGY arguments: what they change, and every message.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "topologies/load/load.h"
#include "topologies/load/load_for_tests.h"

namespace xccl {
namespace {

LoadOptions Hosts(int32_t hosts) {
  LoadOptions options;
  options.hosts = hosts;
  return options;
}

// The links to and from the fabric of a machine joined by --hosts, and its warnings.
std::vector<std::string> FabricOf(const std::string& machine, const LoadOptions& options) {
  const StatusOr<Topology> topology = LoadTopology(machine, options);
  if (!topology.ok()) return {topology.status().message()};
  std::vector<std::string> cables;
  for (const std::string& cable : Cables(*topology))
    if (cable.find("rail") != std::string::npos || cable.find("fabric") != std::string::npos ||
        cable.find("leaf") != std::string::npos)
      cables.push_back(cable);
  cables.insert(cables.end(), topology->spec().warnings.begin(), topology->spec().warnings.end());
  return cables;
}

TEST(Flags, HostsJoinsCopiesByTheirNics) {
  const File file(R"(<topology name="t"><gpu count="2"/><switch id="s"/><nic count="2"/><nic id="idle"/>
  <link from="gpu:*" to="s" bandwidth="9GB/s"/><link from="s" to="nic0" bandwidth="1GB/s"/>
  <link from="s" to="nic1" bandwidth="2GB/s"/></topology>)");
  const StatusOr<Topology> topology = LoadTopology(file.path(), Hosts(2));
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(topology->name(), "2x t");
  EXPECT_EQ(topology->num_ranks(), 4);
  EXPECT_EQ(topology->HostOf(Rank(3)), HostId(1));
  EXPECT_EQ(Cables(*topology),
            (std::vector<std::string>{
                "h0/0--h0/s 9GB/s 0ns", "h0/1--h0/s 9GB/s 0ns", "h0/s--h0/nic0 1GB/s 0ns",
                "h0/s--h0/nic1 2GB/s 0ns", "h1/0--h1/s 9GB/s 0ns", "h1/1--h1/s 9GB/s 0ns",
                "h1/s--h1/nic0 1GB/s 0ns", "h1/s--h1/nic1 2GB/s 0ns", "h0/nic0--rail0 1GB/s 1.3us",
                "h0/nic1--rail1 2GB/s 1.3us", "h1/nic0--rail0 1GB/s 1.3us", "h1/nic1--rail1 2GB/s 1.3us"}));
  LoadOptions one_fabric = Hosts(2);
  one_fabric.no_rails = true;
  EXPECT_EQ(FabricOf(file.path(), one_fabric),
            (std::vector<std::string>{"h0/nic0--fabric 1GB/s 1.3us", "h0/nic1--fabric 2GB/s 1.3us",
                                      "h1/nic0--fabric 1GB/s 1.3us", "h1/nic1--fabric 2GB/s 1.3us"}));
}

// NICs equally far from all GPUs, a lone NIC, and GPUs that only NICs join have one fabric unless --rails is
// given.
TEST(Flags, HostsTakesRailsWhereNicsAreNearGpus) {
  const std::vector<std::string> rails = {"h0/nic0--rail0 1GB/s 1.3us", "h0/nic1--rail1 1GB/s 1.3us",
                                          "h1/nic0--rail0 1GB/s 1.3us", "h1/nic1--rail1 1GB/s 1.3us"};
  const std::vector<std::string> fabric = {"h0/nic0--fabric 1GB/s 1.3us", "h0/nic1--fabric 1GB/s 1.3us",
                                           "h1/nic0--fabric 1GB/s 1.3us", "h1/nic1--fabric 1GB/s 1.3us"};
  LoadOptions asked = Hosts(2);
  asked.rails = true;
  {
    const File cpu(R"(<topology name="t"><gpu count="2"/><cpu id="c"/><nic count="2"/>
    <link from="gpu:*,nic:*" to="c" bandwidth="1GB/s"/></topology>)");
    EXPECT_EQ(FabricOf(cpu.path(), Hosts(2)), fabric);
    EXPECT_EQ(FabricOf(cpu.path(), asked), rails);
  }
  {
    const File sockets(R"(<topology name="t"><gpu count="2"/><cpu id="c" count="2"/><nic count="2"/>
    <link from="gpu:*" to="cpu:*" pairwise="true" bandwidth="1GB/s"/><link from="c0" to="c1" bandwidth="1GB/s"/>
    <link from="nic:*" to="cpu:*" pairwise="true" bandwidth="1GB/s"/></topology>)");
    EXPECT_EQ(FabricOf(sockets.path(), Hosts(2)), rails);
  }
  {
    const File apart(R"(<topology name="t"><gpu count="2"/><nic count="2"/>
    <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="1GB/s"/></topology>)");
    EXPECT_EQ(FabricOf(apart.path(), Hosts(2)), fabric);
  }
  const File lone(R"(<topology name="t"><gpu count="2"/><nic id="nic0"/>
  <link from="gpu:*" to="nic0" bandwidth="1GB/s"/></topology>)");
  EXPECT_EQ(FabricOf(lone.path(), Hosts(1)), (std::vector<std::string>{"nic0--fabric 1GB/s 1.3us"}));
  EXPECT_EQ(LoadTopology("dgx-h100", Hosts(4))->num_nodes(), 4 * 17 + 8);
}

TEST(Flags, HostsLeavesOutNicsForManagement) {
  const File native(R"(<topology name="t"><gpu count="2"/><switch id="s"/><nic id="a"/><nic id="b"/>
  <link from="gpu:*" to="s" bandwidth="9GB/s"/><link from="s" to="a" bandwidth="4GB/s"/>
  <link from="s" to="b" bandwidth="999MB/s"/></topology>)");
  EXPECT_EQ(FabricOf(native.path(), Hosts(1)),
            (std::vector<std::string>{
                "a--fabric 4GB/s 1.3us",
                "--hosts: the fabric leaves out b (0.999GB/s, slow); the fastest of the others has 4GB/s"}));
  const File dump(R"(<system version="1"><cpu numaid="0" arch="arm64">
  <pci busid="0000:01:00.0" class="0x060400" link_speed="16 GT/s" link_width="16">
  <pci busid="0000:02:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"><gpu dev="0" sm="89" rank="0"/></pci>
  <pci busid="0000:03:00.0" class="0x020000" link_speed="16 GT/s" link_width="16">
  <nic><net name="mlx5_0" dev="0" speed="100000" port="1" gdr="1"/></nic></pci>
  <pci busid="0000:04:00.0" class="0x020000" link_speed="16 GT/s" link_width="16">
  <nic><net name="mlx5_1" dev="1" speed="100000" port="1" gdr="1"/></nic></pci></pci>
  <nic><net name="eth0" dev="2" speed="100000" port="1" gdr="0"/><net name="eth1" dev="3" speed="10000" gdr="1"/>
  <net name="ib0" dev="4" speed="100000" gdr="1"/></nic>
  </cpu></system>)");
  const std::string left_out =
      "--hosts: the fabric leaves out eth0 (12.5GB/s, no PCI device), eth1 (1.25GB/s, slow), ib0 "
      "(12.5GB/s, others are nearer to all GPUs); the fastest of the others has 12.5GB/s";
  EXPECT_EQ(FabricOf(dump.path(), Hosts(2)),
            (std::vector<std::string>{"h0/mlx5_0--rail0 12.5GB/s 1.3us", "h0/mlx5_1--rail1 12.5GB/s 1.3us",
                                      "h1/mlx5_0--rail0 12.5GB/s 1.3us", "h1/mlx5_1--rail1 12.5GB/s 1.3us",
                                      left_out}));
}

TEST(Flags, FabricGivesTheNumbersOfTheNetwork) {
  const File file(R"(<topology name="t"><gpu count="2"/><switch id="s"/><nic count="2"/>
  <link from="gpu:*" to="s" bandwidth="9GB/s"/><link from="s" to="nic:*" bandwidth="4GB/s"/></topology>)");
  const auto joined = [&](const char* fabric, bool no_rails) {
    LoadOptions options = Hosts(2);
    options.fabric = fabric;
    options.no_rails = no_rails;
    return FabricOf(file.path(), options);
  };
  EXPECT_EQ(joined("bandwidth=2GB/s,latency=2us", true),
            (std::vector<std::string>{"h0/nic0--fabric 2GB/s 2us", "h0/nic1--fabric 2GB/s 2us",
                                      "h1/nic0--fabric 2GB/s 2us", "h1/nic1--fabric 2GB/s 2us"}));
  EXPECT_EQ(joined("bandwidth=2GB/s,oversubscription=2", false),
            (std::vector<std::string>{"h0/nic0--rail0 2GB/s 1.3us", "h0/nic1--rail1 2GB/s 1.3us",
                                      "h1/nic0--rail0 2GB/s 1.3us", "h1/nic1--rail1 2GB/s 1.3us",
                                      "rail0--spine0 2GB/s 1.3us", "rail1--spine0 2GB/s 1.3us"}));
  EXPECT_EQ(joined("oversubscription=4", true),
            (std::vector<std::string>{"h0/nic0--leaf0 4GB/s 1.3us", "h0/nic1--leaf0 4GB/s 1.3us",
                                      "h1/nic0--leaf1 4GB/s 1.3us", "h1/nic1--leaf1 4GB/s 1.3us",
                                      "leaf0--spine0 2GB/s 1.3us", "leaf1--spine0 2GB/s 1.3us"}));
  EXPECT_EQ(joined("type=leaf-spine,leaves=1,spines=1,uplink-bandwidth=1GB/s", false).size(), 5u);
  EXPECT_EQ(
      joined("bandwith=2GB/s", false),
      std::vector<std::string>{"--fabric: fabric: unknown attribute 'bandwith'; did you mean 'bandwidth'?"});
  EXPECT_EQ(joined("2GB/s", false), std::vector<std::string>{"--fabric: '2GB/s': expected name=value"});
  EXPECT_EQ(joined("type=rail", false),
            std::vector<std::string>{"--fabric: fabric: unknown type 'rail'; did you mean 'rails'?"});
  EXPECT_EQ(joined("type=rails", true),
            std::vector<std::string>{"--no-rails: not together with --fabric type=rails"});
  EXPECT_EQ(joined("type=fat-tree,k=2", false),
            std::vector<std::string>{"--fabric: 4 end points; a fat tree of k=2 has 2 ports"});
  LoadOptions alone;
  alone.fabric = "bandwidth=2GB/s";
  EXPECT_EQ(FabricOf(file.path(), alone), std::vector<std::string>{"--fabric: only together with --hosts"});
  alone.fabric.reset();
  alone.rails = true;
  EXPECT_EQ(FabricOf(file.path(), alone), std::vector<std::string>{"--rails: only together with --hosts"});
}

// The list of nodes in an error shows every kind: many switches do not hide the NICs.
TEST(Flags, AnErrorListsNodesOfEveryKind) {
  const File file(
      R"(<topology name="t"><gpu count="8"/><switch id="pci-a"/><switch id="pci-b"/><switch id="pci-c"/>
  <switch id="pci-d"/><switch id="pci-e"/><nic id="mlx5_" count="4"/><cpu id="numa" count="2"/>
  <link from="gpu:*,nic:*,cpu:*" to="pci-a" bandwidth="9GB/s"/></topology>)");
  LoadOptions options;
  options.without_links = {"0->nic0"};
  EXPECT_EQ(LoadTopology(file.path(), options).status().message(),
            "--without-link: link 0->nic0: no node nic0; nodes are 0..7, pci-a, pci-b, pci-c, pci-d, ..., "
            "mlx5_0..mlx5_3, numa0..numa1");
}

TEST(Flags, HostsRejects) {
  struct HostsRejection {
    const char* topology;
    int32_t hosts;
    const char* message;
  };
  constexpr HostsRejection kRejections[] = {
      {"dgx1", 2,
       "--hosts: 2; dgx1 has no nic to join copies by; hint: add <nic> elements and their links to its XML"},
      {"rail-2", 2, "--hosts: 2; rail-2 has 2 hosts; expected a machine of one host to copy"},
      {"dgx-a100", 0, "--hosts: 0; expected 1 or more"},
      {"dgx-a100", 1'000'000, "--hosts: 1000000; 17000008 nodes; at most 1048576 are supported"},
  };
  for (const HostsRejection& rejection : kRejections) {
    const StatusOr<Topology> topology = LoadTopology(rejection.topology, Hosts(rejection.hosts));
    ASSERT_FALSE(topology.ok());
    EXPECT_EQ(topology.status().message(), rejection.message);
    EXPECT_EQ(topology.status().code(),
              rejection.hosts == 0 ? StatusCode::kUsage : StatusCode::kInvalidInput);
  }
}

TEST(Flags, LinksAreRemovedAndDegraded) {
  const File file(R"(<topology name="t"><gpu count="3"/><link from="0" to="1" count="2" bandwidth="3B/s"/>
  <link from="1" to="2" bandwidth="10GB/s"/></topology>)");
  struct Change {
    std::vector<std::string> without, degrades, cables;
  };
  const std::vector<Change> changes = {
      {{"0->1"}, {}, {"1->0 3B/s 0ns", "1->0 3B/s 0ns", "1--2 10GB/s 0ns"}},
      {{"0<->1"}, {}, {"1--2 10GB/s 0ns"}},
      {{"gpu:0 -> gpu:*", "1->2"}, {}, {"1->0 3B/s 0ns", "1->0 3B/s 0ns", "2->1 10GB/s 0ns"}},
      {{"0<->1", "1<->2"}, {}, {}},
      {{}, {"1->2=0.25"}, {"0--1 3B/s 0ns", "0--1 3B/s 0ns", "1--2 2.5GB/s 0ns"}},
      {{"0<->1"}, {"1->2=.5", "1<->2=1"}, {"1--2 5GB/s 0ns"}},
  };
  for (const Change& change : changes) {
    LoadOptions options;
    options.without_links = change.without;
    options.degrades = change.degrades;
    const StatusOr<Topology> topology = LoadTopology(file.path(), options);
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    EXPECT_EQ(Cables(*topology), change.cables);
  }
}

TEST(Flags, PlainSwitchesOnlyForward) {
  LoadOptions options;
  const Topology with = LoadTopology("nvswitch:4@multicast=true,reduce=true", options).value();
  options.plain_switches = true;
  const Topology without = LoadTopology("nvswitch:4@multicast=true,reduce=true", options).value();
  EXPECT_TRUE(with.spec().nodes.back().multicast);
  EXPECT_FALSE(without.spec().nodes.back().multicast || without.spec().nodes.back().reduce);
  EXPECT_EQ(with.num_links(), without.num_links());
}

TEST(Flags, LinksReject) {
  struct LinkRejection {
    const char* without;
    const char* degrade;
    StatusCode code;
    const char* message;
  };
  constexpr LinkRejection kRejections[] = {
      {"0-1", "", StatusCode::kUsage,
       "--without-link: '0-1': expected A->B, such as 0->1 or h0/gpu:3->h0/nvswitch"},
      {"->1", "", StatusCode::kUsage,
       "--without-link: '->1': expected A->B, such as 0->1 or h0/gpu:3->h0/nvswitch"},
      {"0->16", "", StatusCode::kInvalidInput, "--without-link: link 0->16: no node 16; nodes are 0..15"},
      {"0->", "", StatusCode::kInvalidInput,
       "--without-link: link 0->: an empty reference; expected a node such as 0, gpu:3 or h0/gpu:3"},
      {"0->2", "", StatusCode::kInvalidInput,
       "--without-link: link 0->2: no such link; 0 has links to 4, 1, 3, 12"},
      {"", "0->1", StatusCode::kUsage, "--degrade '0->1': no factor; expected A->B=F, such as 0->1=0.5"},
      {"", "0->1=", StatusCode::kUsage,
       "--degrade: factor '': expected a decimal above 0 and at most 1, such as 0.5 or 0.001"},
      {"", "0->1=0", StatusCode::kUsage,
       "--degrade: factor '0': expected a decimal above 0 and at most 1, such as 0.5 or 0.001"},
      {"", "0->1=1.5", StatusCode::kUsage,
       "--degrade: factor '1.5': expected a decimal above 0 and at most 1, such as 0.5 or 0.001"},
      {"", "0->1=half", StatusCode::kUsage,
       "--degrade: factor 'half': expected a decimal above 0 and at most 1, such as 0.5 or 0.001"},
      {"", "0->1=1e-3", StatusCode::kUsage,
       "--degrade: factor '1e-3': expected a decimal above 0 and at most 1, such as 0.5 or 0.001"},
      {"", "0->2=0.5", StatusCode::kInvalidInput,
       "--degrade: link 0->2: no such link; 0 has links to 4, 1, 3, 12"},
  };
  for (const LinkRejection& rejection : kRejections) {
    LoadOptions options;
    if (*rejection.without != '\0') options.without_links = {rejection.without};
    if (*rejection.degrade != '\0') options.degrades = {rejection.degrade};
    const StatusOr<Topology> topology = LoadTopology("torus:4x4", options);
    ASSERT_FALSE(topology.ok());
    EXPECT_EQ(topology.status().message(), rejection.message);
    EXPECT_EQ(topology.status().code(), rejection.code) << rejection.message;
  }
  LoadOptions options;
  options.degrades = {"0->1=0.0000001"};
  EXPECT_EQ(LoadTopology("ring:2@bandwidth=1KB/s", options).status().message(),
            "--degrade: link 0->1: less than 1 B/s is left; expected a larger factor");
}

}  // namespace
}  // namespace xccl
