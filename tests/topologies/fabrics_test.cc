// Fabrics of large clusters: planes, several switches in place of one, racks and rails on leaves, thin cores,
// several cables between groups. Each small case beside the cables that it means, and the translations of
// each.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "topologies/load/load.h"
#include "topologies/symmetry.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

Topology Read(const std::string& inside) {
  StatusOr<Topology> topology = ReadNativeXml("<topology name=\"t\">" + inside + "</topology>", "t.xml");
  EXPECT_TRUE(topology.ok()) << inside << ": " << topology.status().message();
  return *std::move(topology);
}

// The cables at a node in order, "rail0 25GB/s"; equal ones are counted, "2 rail0 25GB/s".
std::vector<std::string> CablesAt(const Topology& topology, const std::string& name) {
  std::map<std::string, int> count;
  std::vector<std::string> order;
  for (const Link& link : topology.spec().links) {
    const auto shown = [&](NodeId n) {
      const Node& node = topology.node(n);
      return node.host ? topology.spec().hosts[node.host->index()].name + "/" + node.id : node.id;
    };
    if (shown(link.from) != name) continue;
    const std::string cable = shown(link.to) + " " + FormatBandwidth(link.bandwidth_bytes_per_s);
    if (count[cable]++ == 0) order.push_back(cable);
  }
  for (std::string& cable : order)
    if (count[cable] > 1) cable = fmt::format("{} {}", count[cable], cable);
  return order;
}

using Cables = std::vector<std::string>;

constexpr const char* kHost = R"(<gpu count="2"/><nic count="2"/>
  <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="50GB/s"/>)";

TEST(Fabrics, EachPortOfANicIsOnItsPlane) {
  const Topology topology = Read(fmt::format(
      R"(<cluster hosts="2"><cluster hosts="2">{}<fabric type="rails" planes="2" bandwidth="25GB/s"/></cluster>
      <fabric id="agg" planes="2" count="2" bandwidth="10GB/s"/></cluster>)",
      kHost));
  EXPECT_EQ(CablesAt(topology, "pod1.h0/nic1"),
            (Cables{"pod1.h0/1 50GB/s", "pod1.plane0.rail1 25GB/s", "pod1.plane1.rail1 25GB/s"}));
  EXPECT_EQ(CablesAt(topology, "pod0.plane1.rail0"), (Cables{"pod0.h0/nic0 25GB/s", "pod0.h1/nic0 25GB/s",
                                                             "plane1.agg0 10GB/s", "plane1.agg1 10GB/s"}));
  EXPECT_EQ(CablesAt(topology, "plane0.agg1"),
            (Cables{"pod0.plane0.rail0 10GB/s", "pod0.plane0.rail1 10GB/s", "pod1.plane0.rail0 10GB/s",
                    "pod1.plane0.rail1 10GB/s"}));
  EXPECT_TRUE(FindTranslations(topology).IsTransitive());
}

TEST(Fabrics, PlanesMeetUnderAFabricWithoutPlanes) {
  const Topology topology = Read(
      R"(<cluster hosts="2"><cluster hosts="2"><gpu id="0"/><fabric id="tor" planes="2"/></cluster>
      <fabric id="core"/></cluster>)");
  EXPECT_EQ(CablesAt(topology, "core"), (Cables{"pod0.plane0.tor 50GB/s", "pod0.plane1.tor 50GB/s",
                                                "pod1.plane0.tor 50GB/s", "pod1.plane1.tor 50GB/s"}));
}

// A plane for each rail: the spines of a rail are joined to no other rail.
TEST(Fabrics, RailsKeepApartWithSpinesOfTheirOwn) {
  const Topology topology = Read(fmt::format(
      R"(<cluster hosts="3"><cluster hosts="2">{}<fabric type="rails"/></cluster>
      <fabric type="rails" count="2" oversubscription="1" prefix="spine."/></cluster>)",
      kHost));
  EXPECT_EQ(CablesAt(topology, "pod2.rail1"), (Cables{"pod2.h0/nic1 50GB/s", "pod2.h1/nic1 50GB/s",
                                                      "spine.rail1.0 50GB/s", "spine.rail1.1 50GB/s"}));
  EXPECT_EQ(CablesAt(topology, "spine.rail0.1"),
            (Cables{"pod0.rail0 50GB/s", "pod1.rail0 50GB/s", "pod2.rail0 50GB/s"}));
  EXPECT_TRUE(FindTranslations(topology).IsTransitive());
}

TEST(Fabrics, RailsWithSeveralSwitchesAndSpines) {
  const Topology topology = Read(
      R"(<cluster hosts="4"><gpu count="2"/><fabric type="rails" count="2" spines="2" oversubscription="2"/></cluster>)");
  EXPECT_EQ(CablesAt(topology, "rail1.0"), (Cables{"h0/1 50GB/s", "h1/1 50GB/s", "h2/1 50GB/s", "h3/1 50GB/s",
                                                   "spine0 50GB/s", "spine1 50GB/s"}));
  EXPECT_EQ(topology.num_nodes(), 8 + 4 + 2);
  EXPECT_EQ(topology.num_links(), 2 * 8 * 2 + 2 * 4 * 2);
}

// Racks of two hosts under one switch; pods of two racks; 7:1 above.
TEST(Fabrics, RacksTakeSeveralHostsAndTheCoreIsThin) {
  const Topology topology = Read(fmt::format(
      R"(<cluster hosts="3"><cluster hosts="4">{}
      <fabric type="leaf-spine" leaves="2" spines="2" bandwidth="50GB/s" oversubscription="1"/></cluster>
      <fabric id="atsw" count="2" oversubscription="7:2"/></cluster>)",
      kHost));
  EXPECT_EQ(CablesAt(topology, "pod1.leaf0"),
            (Cables{"pod1.h0/nic0 50GB/s", "pod1.h0/nic1 50GB/s", "pod1.h1/nic0 50GB/s",
                    "pod1.h1/nic1 50GB/s", "pod1.spine0 100GB/s", "pod1.spine1 100GB/s"}));
  // 200 GB/s come into a spine: 200 * 2 / 7 go up, over two cables.
  EXPECT_EQ(CablesAt(topology, "pod1.spine1"), (Cables{"pod1.leaf0 100GB/s", "pod1.leaf1 100GB/s",
                                                       "atsw0 28571428571B/s", "atsw1 28571428571B/s"}));
  EXPECT_TRUE(FindTranslations(topology).IsTransitive());
}

// Two scalable units of two hosts, a leaf a rail in each, under common spines.
TEST(Fabrics, LeavesTakeARailOfSeveralHosts) {
  const Topology topology = Read(fmt::format(
      R"(<cluster hosts="4">{}<fabric type="leaf-spine" leaves="4" rails="2" spines="1"/></cluster>)",
      kHost));
  EXPECT_EQ(CablesAt(topology, "leaf0"), (Cables{"h0/nic0 50GB/s", "h1/nic0 50GB/s", "spine0 50GB/s"}));
  EXPECT_EQ(CablesAt(topology, "leaf3"), (Cables{"h2/nic1 50GB/s", "h3/nic1 50GB/s", "spine0 50GB/s"}));
  EXPECT_TRUE(FindTranslations(topology).IsTransitive());
}

TEST(Fabrics, TwoLevelsOfScaleUp) {
  const Topology topology = Read(R"(<cluster hosts="3"><gpu count="2"/><switch id="ub" count="2"/>
      <link from="gpu:*" to="ub*" bandwidth="30GB/s"/><nic count="2"/>
      <fabric type="rails" count="2" attach="ub*" bandwidth="20GB/s" prefix="l2."/>
      <fabric type="rails" attach="nic:*"/></cluster>)");
  EXPECT_EQ(CablesAt(topology, "h1/ub1"),
            (Cables{"h1/0 30GB/s", "h1/1 30GB/s", "l2.rail1.0 20GB/s", "l2.rail1.1 20GB/s"}));
  EXPECT_EQ(CablesAt(topology, "rail1"), (Cables{"h0/nic1 50GB/s", "h1/nic1 50GB/s", "h2/nic1 50GB/s"}));
}

// Group g has 4 cables to each other group, and 4 routers: each router has one of them.
TEST(Fabrics, GroupsOfADragonflyHaveSeveralCables) {
  const Topology topology = LoadTopology("dragonfly:4x4x2@global-links=4,global-bandwidth=10GB/s").value();
  for (const char* router : {"router0", "router5", "router15"}) {
    const Cables cables = CablesAt(topology, router);
    EXPECT_EQ(std::ranges::count_if(cables, [](const std::string& c) { return c.ends_with(" 10GB/s"); }), 3)
        << router;
  }
  EXPECT_EQ(topology.num_nodes(), 4 * 4 * 3);
  EXPECT_EQ(topology.num_links(), 2 * (32 + 4 * 6 + 4 * 6));
  const SymmetryGroup group = FindTranslations(topology);
  EXPECT_TRUE(group.IsTransitive()) << group.order();
}

// The routers of a cable depend on how far its groups are apart: the translation by a group is there also
// where the cables are spread unevenly.
TEST(Fabrics, UnevenCablesOfADragonflyKeepTheTranslationByAGroup) {
  const Topology topology = LoadTopology("dragonfly:6x4x2@global-links=2").value();
  std::vector<NodeId> image;
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    const int32_t first = topology.IsGpu(NodeId(n)) ? 0 : 48, of = first == 0 ? 48 : 24, step = of / 6;
    image.emplace_back(first + (n - first + step) % of);
  }
  EXPECT_TRUE(SymmetryGroup::Create(topology, {{6, image}}).ok());
  EXPECT_EQ(FindTranslations(topology).order() % 12, 0);
}

TEST(Fabrics, RoutersOfADragonflyTakeRailsOfHosts) {
  const Topology topology = Read(fmt::format(
      R"(<cluster hosts="8">{}<fabric type="dragonfly" groups="2" routers="4" rails="2" global-links="4"/></cluster>)",
      kHost));
  const Cables cables = CablesAt(topology, "router3");
  EXPECT_EQ(Cables(cables.begin(), cables.begin() + 2), (Cables{"h2/nic1 50GB/s", "h3/nic1 50GB/s"}));
  EXPECT_EQ(cables.size(), 2u + 3 + 1);
  EXPECT_TRUE(FindTranslations(topology).IsTransitive());
}

// Cells with a tree inside, whose spines have the cables between cells.
TEST(Fabrics, CellsAreJoinedByCablesBetweenTheirSpines) {
  const Topology topology = Read(R"(<cluster hosts="3" name="cell"><cluster hosts="4"><gpu id="0"/>
      <fabric type="leaf-spine" leaves="2" spines="2"/></cluster>
      <fabric type="full-mesh" links="2" bandwidth="10GB/s" latency="1us"/></cluster>)");
  EXPECT_EQ(CablesAt(topology, "cell0.spine0"), (Cables{"cell0.leaf0 50GB/s", "cell0.leaf1 50GB/s",
                                                        "cell1.spine0 10GB/s", "cell2.spine0 10GB/s"}));
  EXPECT_EQ(CablesAt(topology, "cell2.spine1"), (Cables{"cell2.leaf0 50GB/s", "cell2.leaf1 50GB/s",
                                                        "cell0.spine1 10GB/s", "cell1.spine1 10GB/s"}));
  EXPECT_TRUE(FindTranslations(topology).IsTransitive());
}

TEST(Fabrics, HostsJoinWithoutASwitch) {
  const Topology topology =
      Read(R"(<cluster hosts="3"><gpu count="2"/><fabric type="full-mesh" links="1" planes="2"/></cluster>)");
  EXPECT_EQ(CablesAt(topology, "h0/0"), (Cables{"2 h1/1 50GB/s"}));
  EXPECT_EQ(CablesAt(topology, "h0/1"), (Cables{"2 h2/0 50GB/s"}));
}

// Counted before anything is built.
TEST(Fabrics, TooLargeOnesAreRefused) {
  const std::pair<const char*, std::string> kCases[] = {
      {R"(<cluster hosts="2"><gpu id="0"/><fabric planes="1000000000"/></cluster>)", "1000000002 nodes"},
      {R"(<cluster hosts="2"><gpu id="0"/><fabric type="rails" planes="2" count="8000000"/></cluster>)",
       "8000002 nodes"},
      {R"(<cluster hosts="2"><gpu id="0"/><fabric type="full-mesh" links="1000000000"/></cluster>)",
       "2000000000 links"},
      {R"(<dragonfly groups="4" routers="2" hosts="2" global-links="1000000"/>)", "12000040 links"}};
  for (const auto& [xml, size] : kCases) {
    const StatusOr<Topology> read = ReadNativeXml(fmt::format("<topology>{}</topology>", xml), "t.xml");
    ASSERT_FALSE(read.ok()) << xml;
    EXPECT_NE(read.status().message().find(size + "; at most "), std::string::npos)
        << read.status().message();
  }
  EXPECT_EQ(
      ReadNativeXml(R"(<topology><cluster hosts="9"><gpu count="2"/></cluster></topology>)", "t.xml", {17, 0})
          .status()
          .message(),
      "t.xml:1:11: 18 nodes; at most 17 are supported");
}

// The flag has them, too; ports of a NIC share its bandwidth.
TEST(Fabrics, FlagsHaveThem) {
  LoadOptions options;
  options.hosts = 4;
  options.fabric = "type=leaf-spine,leaves=16,rails=8,spines=2,planes=2";
  const StatusOr<Topology> topology = LoadTopology("dgx-h100", options);
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(CablesAt(*topology, "plane1.leaf15"),
            (Cables{"h2/nic7 25GB/s", "h3/nic7 25GB/s", "plane1.spine0 25GB/s", "plane1.spine1 25GB/s"}));
  options.fabric = "type=switch,oversubscription=2";
  EXPECT_EQ(LoadTopology("dgx-h100", options).status().message(),
            "--fabric: fabric: oversubscription without spines; expected spines of 1 or more");
  options.fabric = "type=leaf-spine,leaves=3,rails=3,spines=2";
  EXPECT_EQ(LoadTopology("dgx-h100", options).status().message(),
            "--fabric: rails '3': a host has 8 nics; expected a multiple");
}

}  // namespace
}  // namespace xccl
