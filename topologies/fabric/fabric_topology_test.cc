#include "topologies/fabric/fabric_topology.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/fabric/job.h"
#include "topologies/load/load_for_tests.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

constexpr int64_t kRate = 50'000'000'000;

// Leaves with hosts of one adapter each, under one spine: "leaf0: h0 h1", "leaf1: h2 h3".
Fabric TwoLevels(int32_t leaves, int32_t hosts_of_leaf, const std::string& device, int64_t rate = kRate) {
  Fabric fabric;
  fabric.format = "a format";
  for (int32_t l = 0; l < leaves; ++l) {
    fabric.switches.push_back({fmt::format("leaf{}", l), 0});
    for (int32_t i = 0; i < hosts_of_leaf; ++i) {
      const auto adapter = static_cast<int32_t>(fabric.adapters.size());
      fabric.adapters.push_back({fmt::format("h{}", adapter), device, 0, 0});
      fabric.cables.push_back({{true, l, i + 1}, {false, adapter, 1}, rate, 0, 0});
    }
    fabric.cables.push_back({{true, l, 99}, {true, leaves, l + 1}, rate, 0, 0});
  }
  fabric.switches.push_back({"spine", 0});
  return fabric;
}

// One host whose adapters are all at one switch.
Fabric OneHost(const std::vector<std::string>& devices) {
  Fabric fabric;
  fabric.format = "a format";
  fabric.switches = {{"sw", 0}};
  for (const std::string& device : devices) {
    const auto a = static_cast<int32_t>(fabric.adapters.size());
    fabric.adapters.push_back({"h0", device, static_cast<uint64_t>(0x100 + a), 0});
    fabric.cables.push_back({{true, 0, a + 1}, {false, a, 1}, kRate, 0, 0});
  }
  return fabric;
}

// A host with two GPUs at an NVSwitch, each beside the NIC of that name.
HostKind TwoGpus(std::string_view nic0, std::string_view nic1, std::string_view rate = "50GB/s") {
  const std::string xml = fmt::format(
      R"(<topology name="box"><host name="h"><nvswitch gpus="2"/><nic id="{0}"/><nic id="{1}"/>
      <link from="0" to="nic:{0}" bandwidth="{2}" latency="0ns"/>
      <link from="1" to="nic:{1}" bandwidth="{2}" latency="0ns"/></host></topology>)",
      nic0, nic1, rate);
  return HostKind{"box.xml", ReadNativeXml(xml, "box.xml").value(), {}};
}

FabricOptions WithKind(HostKind kind) {
  FabricOptions options;
  options.kinds.push_back(std::move(kind));
  options.rules.push_back({"", 0});
  return options;
}

// The links between NICs and switches, and between switches; or the error.
std::vector<std::string> Wires(const StatusOr<Topology>& topology) {
  if (!topology.ok()) return {topology.status().message()};
  std::vector<std::string> wires = Cables(*topology);
  std::erase_if(wires, [](const std::string& w) {
    return w.ends_with(" 0ns") || w.find("nvswitch") != std::string::npos;
  });
  return wires;
}

std::vector<std::string> WarningsOf(const Fabric& fabric, const FabricOptions& options) {
  const StatusOr<Topology> topology = FabricTopology(fabric, "net.txt", options);
  return topology.ok() ? topology->spec().warnings : std::vector{topology.status().message()};
}

using Texts = std::vector<std::string>;

TEST(FabricTopology, AnAdapterIsAGpuBesideItsNic) {
  const Topology topology = FabricTopology(TwoLevels(2, 1, "mlx5_0"), "dir/net.txt", {}).value();
  EXPECT_EQ(Cables(topology), (Texts{"h0/0--h0/mlx5_0 50GB/s 0ns", "h1/0--h1/mlx5_0 50GB/s 0ns",
                                     "leaf0--h0/mlx5_0 50GB/s 1.3us", "leaf0--spine 50GB/s 450ns",
                                     "leaf1--h1/mlx5_0 50GB/s 1.3us", "leaf1--spine 50GB/s 450ns"}));
  EXPECT_EQ(topology.name(), "net");
  EXPECT_TRUE(topology.spec().source.starts_with("net.txt (a format); 1.3 us from NIC to switch"));
  EXPECT_EQ(
      topology.spec().warnings,
      (Texts{
          "dir/net.txt: each of 2 adapters stands for one GPU beside its NIC, and GPUs of a host meet only "
          "in the fabric; hint: --host=DUMP (of NCCL) or --host=dgx-h100 puts a host's own links in"}));
}

TEST(FabricTopology, PortsOfOneDeviceAreOneNic) {
  const Topology topology = FabricTopology(OneHost({"mlx5_0", "mlx5_0"}), "net.txt", {}).value();
  EXPECT_EQ(Cables(topology),
            (Texts{"0--mlx5_0 100GB/s 0ns", "sw--mlx5_0 50GB/s 1.3us", "sw--mlx5_0 50GB/s 1.3us"}));
}

TEST(FabricTopology, HostsAreInTheOrderOfTheirNumbers) {
  Fabric fabric = TwoLevels(1, 12, "mlx5_0");
  std::ranges::reverse(fabric.cables);
  const Topology topology = FabricTopology(fabric, "net.txt", {}).value();
  EXPECT_EQ(topology.spec().hosts[2].name, "h2");
  EXPECT_EQ(topology.spec().hosts[11].name, "h11");
}

TEST(FabricTopology, NicsAreMatchedByNameNumberGuidOrOrder) {
  struct Case {
    std::string_view nic0, nic1;
    Texts devices, wires, warnings;
  };
  const Case cases[] = {
      {"mlx5_0",
       "mlx5_3",
       {"mlx5_3", "mlx5_9", "mlx5_0"},
       {"sw--mlx5_3 50GB/s 1.3us", "sw--mlx5_0 50GB/s 1.3us"},
       {"net.txt: NICs are matched by device name on 1 host (h0)",
        "net.txt: adapters that match no NIC, as for storage: mlx5_9 on 1 host (h0)"}},
      {"mlx5_0+mlx5_1",
       "mlx5_2",
       {"mlx5_0", "mlx5_1"},
       {"sw--mlx5_0+mlx5_1 50GB/s 1.3us", "sw--mlx5_0+mlx5_1 50GB/s 1.3us"},
       {"net.txt: NICs are matched by device name on 1 host (h0)",
        "net.txt: NICs without a cable: mlx5_2 of box.xml on 1 host (h0)"}},
      {"mlx5_0",
       "mlx5_0-2",
       {"mlx5_0", "mlx5_0"},
       {"sw--mlx5_0 50GB/s 1.3us", "sw--mlx5_0-2 50GB/s 1.3us"},
       {"net.txt: NICs are matched by device name on 1 host (h0)"}},
      {"mlx5_0",
       "mlx5_3",
       {"HCA-4", "HCA-7"},
       {"sw--mlx5_3 50GB/s 1.3us"},
       {"net.txt: NICs are matched by number (HCA-1 is the first) on 1 host (h0)",
        "net.txt: adapters that match no NIC, as for storage: HCA-7 on 1 host (h0)",
        "net.txt: NICs without a cable: mlx5_0 of box.xml on 1 host (h0)"}},
      {"nic0",
       "nic1",
       {"HCA-2"},
       {"sw--nic1 50GB/s 1.3us"},
       {"net.txt: NICs are matched by number (HCA-1 is the first) on 1 host (h0)",
        "net.txt: NICs without a cable: nic0 of box.xml on 1 host (h0)"}},
      {"nic0",
       "nic1",
       {"mlx5_4", "mlx5_10"},
       {"sw--nic0 50GB/s 1.3us", "sw--nic1 50GB/s 1.3us"},
       {"net.txt: NICs are matched by order on 1 host (h0)"}},
  };
  for (const Case& c : cases) {
    const FabricOptions options = WithKind(TwoGpus(c.nic0, c.nic1));
    EXPECT_EQ(Wires(FabricTopology(OneHost(c.devices), "net.txt", options)), c.wires);
    EXPECT_EQ(WarningsOf(OneHost(c.devices), options), c.warnings);
  }
}

TEST(FabricTopology, AGuidOfTheDumpTellsTheDeviceOnAllHosts) {
  Fabric fabric = OneHost({"ibp1", "ibp2"});
  fabric.adapters.push_back({"h1", "ibp2", 0x900, 0});
  fabric.cables.push_back({{true, 0, 9}, {false, 2, 1}, kRate, 0, 0});
  FabricOptions options = WithKind(TwoGpus("a", "b"));
  options.kinds[0].facts.nics[NodeId(4)].guid = 0x0001000000000000;  // 0x100 in the other order of bytes
  EXPECT_EQ(Wires(FabricTopology(fabric, "net.txt", options)).front(), "sw--h0/b 50GB/s 1.3us");
  EXPECT_EQ(WarningsOf(fabric, options).front(), "net.txt: NICs are matched by guid on 1 host (h0)");
}

TEST(FabricTopology, TwoSlowPortsAreOneFastNic) {
  const FabricOptions options = WithKind(TwoGpus("nic0", "nic1", "100GB/s"));
  EXPECT_EQ(Wires(FabricTopology(OneHost({"a", "b", "c", "d"}), "net.txt", options)),
            (Texts{"sw--nic0 50GB/s 1.3us", "sw--nic0 50GB/s 1.3us", "sw--nic1 50GB/s 1.3us",
                   "sw--nic1 50GB/s 1.3us"}));
}

TEST(FabricTopology, HostsWithFewNicsAreLeftOutUnlessTheyAreNamed) {
  Fabric fabric = OneHost({"mlx5_0", "mlx5_1"});
  fabric.adapters.push_back({"storage", "mlx5_0", 0, 0});
  fabric.cables.push_back({{true, 0, 9}, {false, 2, 1}, kRate, 0, 0});
  FabricOptions options = WithKind(TwoGpus("mlx5_0", "mlx5_1"));
  EXPECT_EQ(FabricTopology(fabric, "net.txt", options)->num_hosts(), 1);
  EXPECT_EQ(
      WarningsOf(fabric, options).front(),
      "net.txt: 1 host (storage) with at most half of the NICs of the hosts that have most: left out, as for "
      "storage or management; hint: --hosts-file=LIST or --job=HOSTS names the hosts that you mean");
  options.listed = {"storage", "h0"};
  const Topology both = FabricTopology(fabric, "net.txt", options).value();
  EXPECT_EQ(both.num_hosts(), 2);
  EXPECT_EQ(both.spec().hosts[0].name, "storage");
}

TEST(FabricTopology, APatternChoosesTheKindOfAHost) {
  FabricOptions options;
  options.kinds = {TwoGpus("mlx5_0", "a"), TwoGpus("b", "mlx5_0")};
  options.rules = {{"h[0-1]", 0}, {"h?", 1}};
  const Topology topology = FabricTopology(TwoLevels(2, 6, "mlx5_0"), "net.txt", options).value();
  EXPECT_EQ(topology.num_hosts(), 10);
  EXPECT_EQ(topology.node(NodeId(3)).id, "mlx5_0");
  EXPECT_EQ(topology.spec().warnings.front(), "net.txt: no --host names 2 hosts (h10, h11): left out");
}

TEST(FabricTopology, AJobHasItsHostsAndTheSwitchesBetweenThem) {
  FabricOptions options;
  options.job = "h[2,1]";
  EXPECT_EQ(Wires(FabricTopology(TwoLevels(3, 2, "mlx5_0"), "net.txt", options)),
            (Texts{"leaf0--h1/mlx5_0 50GB/s 1.3us", "leaf0--spine 50GB/s 450ns",
                   "leaf1--h2/mlx5_0 50GB/s 1.3us", "leaf1--spine 50GB/s 450ns"}));
  EXPECT_EQ(FabricTopology(TwoLevels(3, 2, "mlx5_0"), "net.txt", options)->spec().hosts[0].name, "h2");
  options.job = "h[0-1].cluster.net";
  EXPECT_EQ(Wires(FabricTopology(TwoLevels(3, 2, "mlx5_0"), "net.txt", options)),
            (Texts{"leaf0--h0/mlx5_0 50GB/s 1.3us", "leaf0--h1/mlx5_0 50GB/s 1.3us"}));
}

TEST(FabricTopology, AJobTakenOutOfAMachineIsTheJobOfItsFabric) {
  FabricOptions options;
  const Fabric fabric = TwoLevels(3, 2, "mlx5_0");
  const Topology whole = FabricTopology(fabric, "net.txt", options).value();
  options.job = "h3,h0";
  const Topology job = FabricTopology(fabric, "net.txt", options).value();
  const Topology taken = TakeJob(whole, "h3,h0").value();
  EXPECT_EQ(taken.spec().nodes, job.spec().nodes);
  EXPECT_EQ(Cables(taken).back(), Cables(job).back());
  EXPECT_EQ(TakeJob(whole, "h9").status().message(), "--job: net: no host 'h9'; did you mean 'h0'?");
}

TEST(FabricTopology, CloserHostsAreUnderFewLeaves) {
  const Topology topology = FabricTopology(TwoLevels(3, 3, "mlx5_0"), "net.txt", {}).value();
  EXPECT_EQ(NumLeaves(topology), 3);
  EXPECT_EQ(CloserHosts(topology, "h0,h4,h5").value(), (Texts{"h3", "h4", "h5"}));
  EXPECT_EQ(CloserHosts(topology, "h[0-1,3,6]").value(), (Texts{"h0", "h1", "h2", "h3"}));
  EXPECT_EQ(CloserHosts(topology, "h[0,3,6-8]").value().size(), 5u);
}

TEST(FabricTopology, RatesThatNothingStatesAreAskedFor) {
  const Fabric fabric = TwoLevels(2, 3, "", 0);
  EXPECT_EQ(WarningsOf(fabric, {}),
            (Texts{"net.txt: the file does not state the rate of its NICs; expected a flag; hint: "
                   "--nic-rate=400Gbit/s"}));
  FabricOptions options;
  options.nic_bytes_per_s = kRate;
  EXPECT_EQ(Wires(FabricTopology(fabric, "net.txt", options))[3], "leaf0--spine 150GB/s 450ns");
  EXPECT_EQ(
      WarningsOf(fabric, options).back(),
      "net.txt: 2 cables between switches without a rate: taken as non-blocking, as fast as the hosts below");
}

TEST(FabricTopology, AHostAloneHasAllItsNicsAtItsLeaf) {
  FabricOptions options = WithKind(TwoGpus("nic0", "nic1", "25GB/s"));
  EXPECT_EQ(
      Wires(FabricTopology(TwoLevels(2, 1, "", 0), "net.txt", options)),
      (Texts{"leaf0--h0/nic0 25GB/s 1.3us", "leaf0--h0/nic1 25GB/s 1.3us", "leaf0--spine 50GB/s 450ns",
             "leaf1--h1/nic0 25GB/s 1.3us", "leaf1--h1/nic1 25GB/s 1.3us", "leaf1--spine 50GB/s 450ns"}));
  // At several leaves, in turn.
  Fabric rails = TwoLevels(2, 1, "", 0);
  rails.adapters[1].host = "h0";
  EXPECT_EQ(Wires(FabricTopology(rails, "net.txt", options))[2], "leaf1--nic1 25GB/s 1.3us");
}

TEST(FabricTopology, HostsOfADomainShareTheNvswitchThatTheirDumpNames) {
  Fabric fabric = TwoLevels(2, 2, "mlx5_0");
  fabric.domains = {{"rack0", {"h0", "h2"}}, {"rack1", {"h1"}}};
  FabricOptions options = WithKind(TwoGpus("mlx5_0", "mlx5_1"));
  const auto switches_without_host = [&] {
    const Topology topology = FabricTopology(fabric, "net.txt", options).value();
    return std::ranges::count_if(topology.spec().nodes, [](const Node& node) { return !node.host; });
  };
  EXPECT_EQ(switches_without_host(), 3);
  options.kinds[0].facts.domain_nvswitch = NodeId(2);
  EXPECT_EQ(switches_without_host(), 4);
  const Topology topology = FabricTopology(fabric, "net.txt", options).value();
  EXPECT_EQ(Cables(topology)[0], "h0/0--nvswitch0 450GB/s 500ns");
  options.nvlink_domain = 4;  // h0 and h1, h2 and h3
  EXPECT_EQ(switches_without_host(), 5);
  fabric.domains.clear();
  options.nvlink_domain.reset();
  EXPECT_EQ(WarningsOf(fabric, options).back(),
            "net.txt: the file names no NVLink domains, so that each host keeps the NVSwitch of its domain "
            "to itself; "
            "hint: --nvlink-domain=72 joins hosts in their order");
}

TEST(FabricTopology, DamageIsSaidFirst) {
  Fabric fabric = TwoLevels(2, 1, "mlx5_0");
  fabric.cables[1].full_bandwidth_bytes_per_s = 2 * kRate;
  fabric.cables[1].line = 7;
  fabric.down_ports = 2;
  EXPECT_EQ(WarningsOf(fabric, {}).front(),
            "net.txt:7: damage: leaf0 port 99 to spine port 1 runs at 50GB/s of 100GB/s");
  EXPECT_EQ(WarningsOf(fabric, {})[1], "net.txt: damage: 2 ports that the file lists as down");
}

TEST(FabricTopology, NamesBecomeUniqueIds) {
  Fabric fabric = TwoLevels(2, 1, "mlx5_0");
  fabric.switches = {{"a b", 1}, {"a b", 2}, {"", 3}};
  fabric.adapters[0] = {"", "", 0x10, 0x99};
  fabric.adapters[1] = {"", "", 0x11, 0x99};
  EXPECT_EQ(Wires(FabricTopology(fabric, "net.txt", {})),
            (Texts{"a_b-0000000000000001--nic0 50GB/s 1.3us", "a_b-0000000000000001--switch 50GB/s 450ns",
                   "a_b-0000000000000002--nic1 50GB/s 1.3us", "a_b-0000000000000002--switch 50GB/s 450ns"}));
}

TEST(FabricTopology, Refusals) {
  const Fabric fabric = TwoLevels(2, 1, "mlx5_0");
  const auto error = [&](const FabricOptions& options) {
    return FabricTopology(fabric, "net.txt", options).status().message();
  };
  FabricOptions options;
  options.job = "h[0-7]";
  EXPECT_EQ(error(options), "--job: net.txt: no host 'h2'; did you mean 'h0'?");
  options.job = "h0,h0";
  EXPECT_EQ(error(options), "--job: net.txt: host 'h0' is named twice; expected each host once");
  options.job.reset();
  options.listed = {"x"};
  EXPECT_EQ(error(options), "--hosts-file: net.txt: no host 'x'");
  HostKind without{
      "box.xml", ReadNativeXml("<topology name='b'><nvswitch gpus='2'/></topology>", "b").value(), {}};
  EXPECT_EQ(
      error(WithKind(std::move(without))),
      "--host box.xml: has no nic to join to the fabric; expected a machine with NICs, such as dgx-h100 or a "
      "dump of NCCL; hint: NCCL_TOPO_DUMP_FILE=FILE writes a dump");
  EXPECT_EQ(FabricTopology(Fabric{"f", {}, {}, {}, {}, 0, {}}, "net.txt", {}).status().message(),
            "net.txt: no cable of the f leads to an adapter of a host; expected one or more");
}

}  // namespace
}  // namespace xccl
